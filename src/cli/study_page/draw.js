// Colours, and heat maps on canvases.

/// From nothing to all, and from less to more, in light and in dark.
const kRamps = {
  light: ['ffffff deebf7 9ecae1 4292c6 08519c 062052', '993404 ec9649 ffffff 6eaad7 084081'],
  dark: ['14181d 183254 20628c 3aa0a0 a0d682 fff7aa', 'ffc478 b05c20 14181d 2868a0 96d0ff'],
};
const kDark = matchMedia('(prefers-color-scheme: dark)');

/// 256 colours as a canvas stores them, from the steps of a ramp.
function coloursOf(ramp) {
  const steps = ramp.split(' ').map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Uint32Array.from({length: 256}, (unused, i) => {
    const at = (i / 255) * (steps.length - 1);
    const k = Math.min(Math.floor(at), steps.length - 2);
    const [r, g, b] = steps[k].map((from, c) => Math.round(from + (steps[k + 1][c] - from) * (at - k)));
    return new Uint32Array(new Uint8Array([r, g, b, 255]).buffer)[0];
  });
}
/// Black or white, whichever can be read on a colour (WCAG's relative luminance).
function inkOn(colour) {
  const [r, g, b] = [...new Uint8Array(new Uint32Array([colour]).buffer)].map(
    (v) => ((v / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
}
const kColours = {
  light: kRamps.light.map(coloursOf),
  dark: kRamps.dark.map(coloursOf),
};
function colours() {
  return kDark.matches ? kColours.dark : kColours.light;
}
function asCss(colour) {
  const [r, g, b] = new Uint8Array(new Uint32Array([colour]).buffer);
  return `rgb(${r} ${g} ${b})`;
}

/// A share of 0 to 1 as a colour's number. The square root makes weak attention visible.
function rooted(share) {
  return share > 0 ? Math.min(255, Math.round(255 * Math.sqrt(share))) : 0;
}
/// The background and a text colour that can be read on it.
function shade(element, share) {
  const i = rooted(share),
    mark = i + (kDark.matches ? ' dark' : '');
  if (element.dataset.shade === mark) return; // browsers take long over styles
  element.dataset.shade = mark;
  element.style.backgroundColor = i > 0 ? asCss(colours()[0][i]) : '';
  element.style.color = i > 0 ? inkOn(colours()[0][i]) : '';
}
/// A value of a custom property of the style; asking the browser each time is slow.
const kStyleValues = new Map();
kDark.addEventListener('change', () => kStyleValues.clear());
function styleColour(name) {
  if (!kStyleValues.has(name))
    kStyleValues.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return kStyleValues.get(name);
}

/// `count` rows from `row` on and as many columns from `column` on of a head's pattern, as a picture
/// of at most `most` pixels a side; a pixel that stands for several entries shows their largest, so
/// that a thin diagonal stays. What a query cannot see is left transparent. Null without a pattern.
function patternImage(head, row, column, count, most) {
  const pattern = patternOf(head);
  if (!pattern || count < 1) return null;
  const step = Math.ceil(count / most),
    side = Math.ceil(count / step);
  const norms = normsOf(head),
    scale = 1 / (65535 * largestWeight());
  const largest = new Float32Array(side * side).fill(-1);
  const columnOf = Uint32Array.from({length: count}, (unused, k) => Math.floor(k / step));
  for (let i = row; i < row + count; ++i) {
    const line = columnOf[i - row] * side,
      start = (i * (i + 1)) / 2;
    for (let j = column; j <= Math.min(i, column + count - 1); ++j) {
      const at = line + columnOf[j - column],
        weight = norms ? pattern[start + j] * (norms[j] ?? 0) : pattern[start + j];
      if (weight > largest[at]) largest[at] = weight;
    }
  }
  const image = new ImageData(side, side),
    pixels = new Uint32Array(image.data.buffer);
  const table = colours()[0];
  for (let at = 0; at < largest.length; ++at)
    if (largest[at] >= 0) pixels[at] = table[rooted(largest[at] * scale)];
  return image;
}

/// Puts a picture on a canvas of its size; the style stretches it.
function put(canvas, image) {
  if (canvas.width !== image.width) canvas.width = image.width;
  if (canvas.height !== image.height) canvas.height = image.height;
  canvas.getContext('2d').putImageData(image, 0, 0);
}

/// A row of a pattern as a strip, a pixel a key.
function putRow(canvas, weights, tokens) {
  const image = new ImageData(Math.max(1, tokens), 1),
    pixels = new Uint32Array(image.data.buffer);
  const scale = 1 / largestWeight(),
    table = colours()[0];
  for (let j = 0; j < weights.length; ++j) pixels[j] = table[rooted(weights[j] * scale)];
  put(canvas, image);
}

/// Sets a canvas up to be drawn in CSS pixels, sharp on any screen.
function prepare(canvas, width, height) {
  // Browsers refuse canvases of more than some 16000 pixels a side.
  const ratio = Math.max(1, Math.min(devicePixelRatio || 1, 16000 / Math.max(width, height)));
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/// A bar from 0 to value on a scale from `least` to `most`, with a tick at the chance level and a thin
/// line over one standard error to each side.
function bar(value, chance, least, most, error) {
  const place = (x) => (100 * (Math.min(most, Math.max(least, x)) - least)) / (most - least || 1);
  const zero = place(Math.max(0, least)),
    end = place(value ?? 0);
  const fill = make('span', {class: value < 0 ? 'fill less' : 'fill'});
  fill.style.left = Math.min(zero, end) + '%';
  fill.style.width = Math.abs(end - zero) + '%';
  const element = make('span', {class: 'bar', 'aria-hidden': 'true'}, fill);
  if (Number.isFinite(chance)) {
    const tick = make('span', {class: 'tick'});
    tick.style.left = place(chance) + '%';
    element.append(tick);
  }
  if (Number.isFinite(error)) {
    const line = make('span', {class: 'error'});
    line.style.left = place(value - error) + '%';
    line.style.width = place(value + error) - place(value - error) + '%';
    element.append(line);
  }
  return element;
}
