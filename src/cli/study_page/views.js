// The two pictures of an enlarged head: a matrix, and lines between two columns of tokens.

/// A row for each query, a column for each key. Of a long text a part can be enlarged: that around
/// the query that is looked at, and the key that it attends to most or that was clicked on.
function matrixView() {
  const canvas = make('canvas', {class: 'matrix', tabindex: '0', role: 'img',
    'aria-label': 'attention of each token, a row, to each earlier one, a column; arrow keys move'});
  const slider = make('input', {type: 'range', min: '0', max: '1', step: '0.01', value: '0', id: 'zoom', input: () => draw()});
  const ramp = make('canvas', {class: 'ramp', 'aria-hidden': 'true'}), most = make('span', {});
  const scale = make('span', {class: 'scale'}, '0 ', ramp, ' ', most);  // its middle is a quarter: a square root
  const zoom = make('label', {class: 'choice'}, 'enlarge ', slider);
  const element = make('div', {}, canvas, make('p', {class: 'quiet'},
      'Each row is a token, each column one that it may look at: itself or an earlier one. The stronger the ' +
      'colour, the more attention: ', scale), zoom);
  const picture = document.createElement('canvas');
  let drawn = '', seen = {row: 0, column: 0, count: 1, margin: 0, side: 1};

  /// Where the window begins. It stays while the pointer is in it: it would run away from it.
  const place = (head, tokens, count) => {
    if (seen.count === count && count < tokens.length && canvas.matches(':hover')) return seen;
    const i = queryNow() ?? tokens.length - 1, weights = weightsOf(head, i);
    const j = chosen.key ?? weights.indexOf(Math.max(...weights));
    const start = (at) => Math.max(0, Math.min(tokens.length - count, Math.round(at - count / 2)));
    return {row: start(i), column: start(j)};
  };
  const layout = (head, tokens) => {
    const count = Math.max(1, Math.round(tokens.length ** (1 - slider.value) * Math.min(16, tokens.length) ** Number(slider.value)));
    const {row, column} = place(head, tokens, count);
    const width = Math.max(220, Math.min(element.parentElement?.clientWidth ?? 560, 640, Math.max(360, innerHeight - 400)));
    const longest = Math.max(...[...tokens.slice(row, row + count), ...tokens.slice(column, column + count)]
        .map((token) => [...shortened(token, kLabel)].length));
    const wide = 10 + 8 * longest, labelled = (width - wide) / count >= 9, margin = labelled ? Math.max(24, wide) : 30;
    // Cells of whole pixels, where that costs little.
    const room = width - margin, whole = Math.floor(room / count) * count, side = whole > 0.8 * room ? whole : room;
    return {row, column, count, margin, side, labelled, upright: side / count >= 8 * longest};
  };
  const draw = () => {
    const tokens = tokensNow(), head = headOf.get(chosen.head);
    zoom.hidden = tokens.length <= 24;
    seen = layout(head, tokens);
    const {row, column, count, margin, side} = seen, cell = side / count;
    const context = prepare(canvas, margin + side, margin + side);
    const key = [nameOf(head), chosen.text, chosen.normed, kDark.matches, row, column, count, Math.floor(side)].join();
    if (key !== drawn) {
      put(picture, patternImage(head, row, column, count, Math.floor(side)));
      drawn = key;
      putRow(ramp, Float32Array.from({length: 128}, (unused, k) => (k / 127) ** 2 * largestWeight()), 128);
      most.textContent = number(largestWeight(), chosen.normed ? 2 : 0);
    }
    context.imageSmoothingEnabled = false;
    context.fillStyle = styleColour('--panel');
    context.fillRect(margin, margin, side, side);
    context.drawImage(picture, margin, margin, side, side);
    label(context, tokens);
    const i = queryNow(), j = chosen.key;
    context.strokeStyle = styleColour('--mark');
    context.lineWidth = 1;  // around the row, not on it
    if (i >= row && i < row + count && i !== null) context.strokeRect(margin, margin + (i - row) * cell - 0.5, side, cell + 1);
    if (j >= column && j < column + count && j !== null) context.strokeRect(margin + (j - column) * cell - 0.5, margin, cell + 1, side);
  };
  const label = (context, tokens) => {
    const {row, column, count, margin, side, labelled, upright} = seen, cell = side / count;
    context.font = labelled ? `${Math.min(13, cell * 0.95)}px ${styleColour('--mono')}` : '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    const step = labelled ? 1 : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => s * cell >= 34) ?? 2000;
    const each = (from, marked, write) => {
      for (let k = Math.ceil(from / step) * step; k < from + count; k += step) {
        context.fillStyle = styleColour(k === marked ? '--mark' : '--text');
        write(labelled ? shortened(tokens[k], kLabel) : String(k), margin + (k - from + 0.5) * cell);
      }
    };
    context.textAlign = 'right';
    each(row, queryNow(), (text, middle) => context.fillText(text, margin - 5, middle));
    const turned = labelled && !upright;
    context.textAlign = turned ? 'left' : 'center';
    each(column, chosen.key, (text, middle) => {
      context.save();
      context.translate(middle, turned ? margin - 5 : margin - 10);
      if (turned) context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    });
  };
  const cellAt = (event) => {
    const {row, column, count, margin, side} = seen, box = canvas.getBoundingClientRect();
    const at = (x, from) => x < 0 || x >= side ? null : from + Math.floor(x / side * count);
    return [at(event.clientY - box.top - margin, row), at(event.clientX - box.left - margin, column)];
  };
  canvas.addEventListener('pointermove', (event) => {
    const [i, j] = cellAt(event);
    choose({query: i, key: j});
  });
  canvas.addEventListener('pointerleave', () => choose({query: null, key: null}));
  canvas.addEventListener('click', (event) => {
    const [i] = cellAt(event);
    if (i !== null) choose({pinned: i});
  });
  canvas.addEventListener('keydown', (event) => {
    const across = event.key === 'ArrowLeft' || event.key === 'ArrowRight';
    const to = moved(event, across ? chosen.key ?? queryNow() ?? 0 : queryNow() ?? 0, tokensNow().length);
    if (to !== null) choose(across ? {key: to} : {pinned: to, query: null});
  });
  document.fonts.load('12px signs', kSigns.get(' ')).then(() => { if (element.isConnected) draw(); });
  return {element, draw};
}

const kLabel = 9;         // characters of a token beside a matrix
const kLineHeight = 20;  // pixels a token; the style's too

/// Queries on the left, keys on the right, a line for each weight that shows.
function linesView() {
  const left = make('ol', {class: 'side from'}), right = make('ol', {class: 'side to'});
  const all = make('canvas', {'aria-hidden': 'true'}), some = make('canvas', {'aria-hidden': 'true'});
  const box = make('div', {class: 'lines', tabindex: '0'}, left, make('div', {class: 'between'}, all, some), right);
  const element = make('div', {}, make('p', {class: 'quiet'},
      'Left the tokens that look, right what they look at; the stronger the line, the more attention. ' +
      'Point at a token on the right to see who looks at it.'), box);
  let filled = null, drawn = '', pointed = null;  // pointed: the key under the pointer

  const fill = (tokens) => {
    filled = tokens;
    for (const [list, side] of [[left, 'from'], [right, 'to']])
      list.replaceChildren(...tokens.map((token, i) => make('li', {'data-at': String(i), 'data-side': side}, tokenElement(token))));
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
      weightsOf(head, q).forEach((weight, k) => { if (weight * scale > 0.04) line(q, k, weight * scale); });
  };
  const drawSome = (head, tokens, width, height, scale) => {
    const i = queryNow(), line = pen(some, width, height, 2), from = new Float32Array(tokens.length);
    const weights = pointed === null && i !== null ? weightsOf(head, i) : [];
    if (pointed !== null) for (let q = pointed; q < tokens.length; ++q) from[q] = weightAt(head, q, pointed) * scale;
    from.forEach((share, q) => { if (share > 0) line(q, pointed, share); });
    weights.forEach((weight, k) => { if (weight > 0) line(i, k, weight * scale); });
    all.style.opacity = pointed !== null || i !== null ? 0.2 : 0.7;
    for (const element of box.querySelectorAll('.query')) element.classList.remove('query');
    for (let k = 0; k < tokens.length; ++k) {
      shade(right.children[k].firstChild, (weights[k] ?? 0) * scale);
      shade(left.children[k].firstChild, from[k]);
    }
    (pointed !== null ? right.children[pointed] : left.children[i])?.firstChild.classList.add('query');
  };
  const draw = (following = false) => {
    const tokens = tokensNow(), head = headOf.get(chosen.head), scale = 1 / largestWeight();
    if (filled !== tokens) fill(tokens);
    const width = Math.round(Math.max(60, Math.min(260, (box.clientWidth || 400) * 0.4))), height = tokens.length * kLineHeight;
    drawAll(head, tokens, width, height, scale);
    drawSome(head, tokens, width, height, scale);
    const top = (queryNow() ?? 0) * kLineHeight;
    if (following && !box.matches(':hover') && (top < box.scrollTop || top > box.scrollTop + box.clientHeight - kLineHeight))
      box.scrollTop = top - box.clientHeight / 2;
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
