// The pattern of an enlarged head as a matrix.

const kLabel = 9; // characters of a token beside a matrix

/// A row for each query, a column for each key. Of a long text a part can be enlarged: that around
/// the query that is looked at, and the key that it attends to most or that was clicked on.
function matrixView() {
  const canvas = make('canvas', {
    class: 'matrix',
    tabindex: '0',
    role: 'img',
    'aria-label': 'attention of each token, a row, to each earlier one, a column; arrow keys move',
  });
  const slider = make('input', {
    type: 'range',
    min: '0',
    max: '1',
    step: '0.01',
    value: '0',
    id: 'zoom',
    input: () => draw(),
  });
  const ramp = make('canvas', {class: 'ramp', 'aria-hidden': 'true'}),
    most = make('span', {});
  const scale = make('span', {class: 'scale'}, '0 ', ramp, ' ', most); // its middle is a quarter: a square root
  const zoom = make('label', {class: 'choice'}, 'enlarge ', slider);
  const element = make(
    'div',
    {},
    canvas,
    make(
      'p',
      {class: 'quiet'},
      'Each row is a token, each column one that it may look at: itself or an earlier one. The stronger the ' +
        'colour, the more attention: ',
      scale,
    ),
    zoom,
  );
  const picture = document.createElement('canvas');
  let drawn = '',
    seen = {row: 0, column: 0, count: 1, margin: 0, side: 1};

  /// Where the window begins. It stays while the pointer is in it: it would run away from it.
  const place = (head, tokens, count) => {
    if (seen.count === count && count < tokens.length && canvas.matches(':hover')) return seen;
    const i = queryNow() ?? tokens.length - 1,
      weights = weightsOf(head, i);
    const j = chosen.key ?? weights.indexOf(Math.max(...weights));
    const start = (at) => Math.max(0, Math.min(tokens.length - count, Math.round(at - count / 2)));
    return {row: start(i), column: start(j)};
  };
  const layout = (head, tokens) => {
    const count = Math.max(
      1,
      Math.round(tokens.length ** (1 - slider.value) * Math.min(16, tokens.length) ** Number(slider.value)),
    );
    const {row, column} = place(head, tokens, count);
    const width = Math.max(
      220,
      Math.min(element.parentElement?.clientWidth ?? 560, 640, Math.max(360, innerHeight - 400)),
    );
    const longest = Math.max(
      ...[...tokens.slice(row, row + count), ...tokens.slice(column, column + count)].map(
        (token) => [...shortened(token, kLabel)].length,
      ),
    );
    const wide = 10 + 8 * longest,
      labelled = (width - wide) / count >= 9,
      margin = labelled ? Math.max(24, wide) : 30;
    // Cells of whole pixels, where that costs little.
    const room = width - margin,
      whole = Math.floor(room / count) * count,
      side = whole > 0.8 * room ? whole : room;
    return {row, column, count, margin, side, labelled, upright: side / count >= 8 * longest};
  };
  const draw = () => {
    const tokens = tokensNow(),
      head = headOf.get(chosen.head);
    zoom.hidden = tokens.length <= 24;
    seen = layout(head, tokens);
    const {row, column, count, margin, side} = seen,
      cell = side / count;
    const context = prepare(canvas, margin + side, margin + side);
    const key = [
      nameOf(head),
      chosen.text,
      chosen.normed,
      kDark.matches,
      row,
      column,
      count,
      Math.floor(side),
    ].join();
    if (key !== drawn) {
      put(picture, patternImage(head, row, column, count, Math.floor(side)));
      drawn = key;
      putRow(
        ramp,
        Float32Array.from({length: 128}, (unused, k) => (k / 127) ** 2 * largestWeight()),
        128,
      );
      most.textContent = number(largestWeight(), chosen.normed ? 2 : 0);
    }
    context.imageSmoothingEnabled = false;
    context.fillStyle = styleColour('--panel');
    context.fillRect(margin, margin, side, side);
    context.drawImage(picture, margin, margin, side, side);
    label(context, tokens);
    const i = queryNow(),
      j = chosen.key;
    context.strokeStyle = styleColour('--mark');
    context.lineWidth = 1; // around the row, not on it
    if (i >= row && i < row + count && i !== null)
      context.strokeRect(margin, margin + (i - row) * cell - 0.5, side, cell + 1);
    if (j >= column && j < column + count && j !== null)
      context.strokeRect(margin + (j - column) * cell - 0.5, margin, cell + 1, side);
  };
  const label = (context, tokens) => {
    const {row, column, count, margin, side, labelled, upright} = seen,
      cell = side / count;
    context.font = labelled
      ? `${Math.min(13, cell * 0.95)}px ${styleColour('--mono')}`
      : '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    const step = labelled
      ? 1
      : ([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => s * cell >= 34) ?? 2000);
    const each = (from, marked, write) => {
      for (let k = Math.ceil(from / step) * step; k < from + count; k += step) {
        context.fillStyle = styleColour(k === marked ? '--mark' : '--text');
        write(labelled ? shortened(tokens[k], kLabel) : String(placeOf(k)), margin + (k - from + 0.5) * cell);
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
    const {row, column, count, margin, side} = seen,
      box = canvas.getBoundingClientRect();
    const at = (x, from) => (x < 0 || x >= side ? null : from + Math.floor((x / side) * count));
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
    const to = moved(event, across ? (chosen.key ?? queryNow() ?? 0) : (queryNow() ?? 0), tokensNow().length);
    if (to !== null) choose(across ? {key: to} : {pinned: to, query: null});
  });
  document.fonts.load('12px signs', kSigns.get(' ')).then(() => {
    if (element.isConnected) draw();
  });
  return {element, draw};
}
