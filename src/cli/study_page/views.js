// The two pictures of an enlarged head: a matrix, and lines between two columns of tokens.

/// A row for each query, a column for each key. Of a long text a window can be enlarged.
function matrixView() {
  const canvas = make('canvas', {class: 'matrix', tabindex: '0', role: 'img',
    'aria-label': 'attention of each token, a row, to each earlier one, a column; arrow keys move'});
  const slider = make('input', {type: 'range', min: '0', max: '1', step: '0.01', value: '0', id: 'zoom', input: () => draw()});
  const zoom = make('label', {class: 'choice'}, 'enlarge ', slider);
  const element = make('div', {}, canvas, make('p', {class: 'quiet'},
      'Each row is a token, each column one that it may look at: itself or an earlier one. The darker, ' +
      'the more attention (square root of it).'), zoom);
  let seen = {from: 0, count: 1, margin: 0, side: 1};

  const draw = () => {
    const tokens = tokensNow(), head = headOf.get(chosen.head);
    const width = Math.max(220, Math.min(element.parentElement?.clientWidth ?? 560, 640));
    zoom.hidden = tokens.length <= 24;
    const count = Math.round(tokens.length ** (1 - slider.value) * Math.min(16, tokens.length) ** Number(slider.value));
    const at = queryNow() ?? tokens.length - 1;
    const from = Math.max(0, Math.min(tokens.length - count, Math.round(at - count * 0.75)));
    const labelled = (width - 70) / count >= 9, margin = labelled ? 70 : 30;
    // Cells of whole pixels, where that costs little.
    const room = width - margin, whole = Math.floor(room / count) * count;
    const side = whole > 0.8 * room ? whole : room, cell = side / count;
    seen = {from, count, margin, side};
    const context = prepare(canvas, margin + side, margin + side);
    const picture = document.createElement('canvas');
    const image = patternImage(head, from, count, Math.floor(side));
    if (!image) return;
    put(picture, image);
    context.imageSmoothingEnabled = false;
    context.fillStyle = styleColour('--panel');
    context.fillRect(margin, margin, side, side);
    context.drawImage(picture, margin, margin, side, side);
    label(context, tokens, seen, labelled);
    const i = queryNow(), j = chosen.key;
    context.strokeStyle = styleColour('--mark');
    context.lineWidth = 1.5;
    if (i !== null && i >= from && i < from + count) context.strokeRect(margin, margin + (i - from) * cell, side, Math.max(cell, 2));
    if (j !== null && j >= from && j < from + count) context.strokeRect(margin + (j - from) * cell, margin, Math.max(cell, 2), side);
  };
  const label = (context, tokens, {from, count, margin, side}, labelled) => {
    const cell = side / count, i = queryNow();
    context.font = labelled ? `${Math.min(13, cell * 0.95)}px ${styleColour('--mono')}` : '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    const step = labelled ? 1 : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => s * cell >= 34) ?? 2000;
    for (let k = Math.ceil(from / step) * step; k < from + count; k += step) {
      const text = labelled ? shortened(tokens[k], 9) : String(k), middle = margin + (k - from + 0.5) * cell;
      context.fillStyle = styleColour(k === i ? '--mark' : '--text');
      context.textAlign = 'right';
      context.fillText(text, margin - 4, middle);
      context.save();
      context.translate(middle, margin - 4);
      if (labelled) context.rotate(-Math.PI / 2);
      context.textAlign = labelled ? 'left' : 'center';
      context.fillText(text, 0, labelled ? 0 : -6);
      context.restore();
    }
  };
  const cellAt = (event) => {
    const {from, count, margin, side} = seen, box = canvas.getBoundingClientRect();
    const at = (x) => x < 0 || x >= side ? null : from + Math.floor(x / side * count);
    return [at(event.clientY - box.top - margin), at(event.clientX - box.left - margin)];
  };
  canvas.addEventListener('pointermove', (event) => {
    // An enlarged window follows what is pinned, not the pointer: it would run away from it.
    const [i, j] = cellAt(event);
    if (seen.count === tokensNow().length) choose({query: i, key: j});
    else if (i !== null && j !== null) choose({key: j});
  });
  canvas.addEventListener('pointerleave', () => choose({query: null, key: null}));
  canvas.addEventListener('click', (event) => {
    const [i, j] = cellAt(event);
    if (i !== null) choose({pinned: i, key: j});
  });
  canvas.addEventListener('keydown', (event) => {
    const across = event.key === 'ArrowLeft' || event.key === 'ArrowRight';
    const to = moved(event, across ? chosen.key ?? queryNow() ?? 0 : queryNow() ?? 0, tokensNow().length);
    if (to !== null) choose(across ? {key: to} : {pinned: to, query: null});
  });
  return {element, draw};
}

const kLineHeight = 20;  // pixels a token; the style's too

/// Queries on the left, keys on the right, a line for each weight that shows.
function linesView() {
  const left = make('ol', {class: 'side from'}), right = make('ol', {class: 'side to'});
  const canvas = make('canvas', {'aria-hidden': 'true'});
  const box = make('div', {class: 'lines'}, left, canvas, right);
  const element = make('div', {}, make('p', {class: 'quiet'},
      'Left the tokens that look, right what they look at; the stronger the line, the more attention. ' +
      'Point at a token on the right to see who looks at it.'), box);
  let filled = null, pointed = null;

  const fill = (tokens) => {
    filled = tokens;
    for (const [list, side] of [[left, 'from'], [right, 'to']])
      list.replaceChildren(...tokens.map((token, i) => make('li', {'data-at': String(i), 'data-side': side}, tokenElement(token))));
  };
  const draw = (following = false) => {
    const tokens = tokensNow(), head = headOf.get(chosen.head), scale = 1 / largestWeight();
    if (filled !== tokens) fill(tokens);
    const width = Math.max(60, Math.min(260, (box.clientWidth || 400) * 0.4)), height = tokens.length * kLineHeight;
    const context = prepare(canvas, width, height), i = queryNow(), colour = styleColour('--mark');
    const line = (query, key, strength) => {
      context.globalAlpha = strength;
      context.beginPath();
      context.moveTo(0, (query + 0.5) * kLineHeight);
      context.lineTo(width, (key + 0.5) * kLineHeight);
      context.stroke();
    };
    context.strokeStyle = colour;
    context.lineWidth = 1;
    const some = pointed !== null || i !== null;
    for (let q = 0; q < tokens.length; ++q)
      for (let k = 0; k <= q; ++k) {
        const share = weightAt(head, q, k) * scale;
        if (share > 0.04) line(q, k, share * (some ? 0.15 : 0.7));
      }
    context.lineWidth = 2;
    if (pointed !== null) for (let q = pointed; q < tokens.length; ++q) line(q, pointed, weightAt(head, q, pointed) * scale);
    else if (i !== null) for (let k = 0; k <= i; ++k) line(i, k, weightAt(head, i, k) * scale);
    for (let k = 0; k < tokens.length; ++k) {
      const to = right.children[k].firstChild, from = left.children[k].firstChild;
      shade(to, pointed === null && i !== null ? weightAt(head, i, k) * scale : 0);
      shade(from, pointed !== null ? weightAt(head, k, pointed) * scale : 0);
      from.classList.toggle('query', pointed === null && k === i);
      to.classList.toggle('query', k === pointed);
    }
    if (following && i !== null && !box.matches(':hover')) {
      const top = i * kLineHeight;
      if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - kLineHeight) box.scrollTop = top - box.clientHeight / 2;
    }
  };
  const redraw = oncePerFrame(draw);
  box.addEventListener('pointerover', (event) => {
    const item = event.target.closest?.('[data-at]'), at = item ? Number(item.dataset.at) : null;
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
