// The pattern of an enlarged head as lines between two columns of tokens.

const kLineHeight = 20; // pixels a token; the style's too

/// Queries on the left, keys on the right, a line for each weight that shows.
function linesView() {
  const left = make('ol', {class: 'side from'}),
    right = make('ol', {class: 'side to'});
  const all = make('canvas', {'aria-hidden': 'true'}),
    some = make('canvas', {'aria-hidden': 'true'});
  const box = make(
    'div',
    {class: 'lines', tabindex: '0'},
    left,
    make('div', {class: 'between'}, all, some),
    right,
  );
  const element = make(
    'div',
    {},
    make(
      'p',
      {class: 'quiet'},
      'Left the tokens that look, right what they look at; the stronger the line, the more attention. ' +
        'Point at a token on the right to see who looks at it.',
    ),
    box,
  );
  let filled = null,
    drawn = '',
    pointed = null; // pointed: the key under the pointer

  const fill = (tokens) => {
    filled = tokens;
    for (const [list, side] of [
      [left, 'from'],
      [right, 'to'],
    ])
      list.replaceChildren(
        ...tokens.map((token, i) =>
          make('li', {'data-at': String(i), 'data-side': side}, tokenElement(token)),
        ),
      );
  };
  const pen = (canvas, width, height, thickness) => {
    const context = prepare(canvas, width, height);
    context.strokeStyle = styleColour('--mark');
    context.lineWidth = thickness;
    return (query, key, strength) => {
      context.globalAlpha = Math.min(1, strength);
      context.beginPath();
      context.moveTo(0, (query + 0.5) * kLineHeight);
      context.lineTo(width, (key + 0.5) * kLineHeight);
      context.stroke();
    };
  };
  const drawAll = (head, tokens, width, height, scale) => {
    const key = [nameOf(head), chosen.text, chosen.normed, kDark.matches, width].join();
    if (key === drawn) return;
    drawn = key;
    const line = pen(all, width, height, 1);
    for (let q = 0; q < tokens.length; ++q)
      weightsOf(head, q).forEach((weight, k) => {
        if (weight * scale > 0.04) line(q, k, weight * scale);
      });
  };
  const drawSome = (head, tokens, width, height, scale) => {
    const i = queryNow(),
      line = pen(some, width, height, 2),
      from = new Float32Array(tokens.length);
    const weights = pointed === null && i !== null ? weightsOf(head, i) : [];
    if (pointed !== null)
      for (let q = pointed; q < tokens.length; ++q) from[q] = weightAt(head, q, pointed) * scale;
    from.forEach((share, q) => {
      if (share > 0) line(q, pointed, share);
    });
    weights.forEach((weight, k) => {
      if (weight > 0) line(i, k, weight * scale);
    });
    all.style.opacity = pointed !== null || i !== null ? 0.2 : 0.7;
    for (const token of box.querySelectorAll('.query')) token.classList.remove('query');
    for (let k = 0; k < tokens.length; ++k) {
      shade(right.children[k].firstChild, (weights[k] ?? 0) * scale);
      shade(left.children[k].firstChild, from[k]);
    }
    (pointed !== null ? right.children[pointed] : left.children[i])?.firstChild.classList.add('query');
  };
  const draw = (following = false) => {
    const tokens = tokensNow(),
      head = headOf.get(chosen.head),
      scale = 1 / largestWeight();
    if (filled !== tokens) fill(tokens);
    const width = Math.round(Math.max(60, Math.min(260, (box.clientWidth || 400) * 0.4))),
      height = tokens.length * kLineHeight;
    drawAll(head, tokens, width, height, scale);
    drawSome(head, tokens, width, height, scale);
    const top = (queryNow() ?? 0) * kLineHeight;
    if (
      following &&
      !box.matches(':hover') &&
      (top < box.scrollTop || top > box.scrollTop + box.clientHeight - kLineHeight)
    )
      box.scrollTop = top - box.clientHeight / 2;
  };
  const redraw = oncePerFrame(draw);
  box.addEventListener('pointerover', (event) => {
    const item = event.target.closest?.('[data-at]'),
      at = item ? Number(item.dataset.at) : null;
    const to = item?.dataset.side === 'to';
    if (pointed !== (to ? at : null)) redraw();
    pointed = to ? at : null;
    choose({query: item && !to ? at : null, key: null});
  });
  box.addEventListener('pointerleave', () => {
    pointed = null;
    redraw();
    choose({query: null});
  });
  left.addEventListener('click', (event) => {
    const at = event.target.closest('[data-at]')?.dataset.at;
    if (at !== undefined) choose({pinned: Number(at)});
  });
  return {element, draw};
}
