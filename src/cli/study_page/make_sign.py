"""Prints the @font-face rule of style.css: one glyph, an open box, for U+2420 (symbol for space).

Many systems have no font with U+2420, and spaces must be seen. Debian: python3-fonttools.
"""
import base64
import io

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen


def polygon(*points):
    pen = TTGlyphPen(None)
    if points:
        pen.moveTo(points[0])
        for point in points[1:]:
            pen.lineTo(point)
        pen.closePath()
    return pen.glyph()


box = polygon((80, 120), (80, -120), (520, -120), (520, 120), (460, 120), (460, -60), (140, -60), (140, 120))
font = FontBuilder(1000, isTTF=True)
font.setupGlyphOrder([".notdef", "s"])
font.setupCharacterMap({0x2420: "s"})
font.setupGlyf({".notdef": polygon(), "s": box})
font.setupHorizontalMetrics({".notdef": (600, 0), "s": (600, 80)})
font.setupHorizontalHeader(ascent=800, descent=-200)
font.setupNameTable({"familyName": "signs", "styleName": "Regular"})
font.setupOS2(sTypoAscender=800, sTypoDescender=-200, usWinAscent=800, usWinDescent=200)
font.setupPost(keepGlyphNames=False)
font.font["head"].created = font.font["head"].modified = 0  # the same bytes every time
font.font.recalcTimestamp = False
font.font.flavor = "woff"
stream = io.BytesIO()
font.save(stream)
text = base64.b64encode(stream.getvalue()).decode()
print(f'@font-face {{ font-family: signs; unicode-range: U+2420; src: url("data:font/woff;base64,{text}"); }}')
