// Maps of signed numbers, and what they show of heads: composition and patching.

/// A heat map with names: {rows, columns, value(r, c), read(r, c), pick(r, c), height, width} where
/// height and width are a cell's. Colours go from -largest to largest, which is that of the values
/// unless it is given.
function signedMap({rows, columns, value, read, pick, label, height, width, largest = 0}) {
  const canvas = make('canvas', {
    tabindex: '0',
    role: 'img',
    'aria-label': label + '; arrow keys move',
    class: 'signed',
  });
  const said = make('p', {class: 'read', 'aria-live': 'polite'});
  let row = -1,
    column = -1;
  if (largest === 0)
    for (let r = 0; r < rows.length; ++r)
      for (let c = 0; c < columns.length; ++c) largest = Math.max(largest, Math.abs(value(r, c) ?? 0));
  const left = height >= 11 ? 12 + 7 * Math.max(...rows.map((name) => name.length)) : 8,
    longest = Math.max(...columns.map((name) => [...name].length));
  const upright = 8 * longest <= width,
    top = width < 11 ? 8 : upright ? 20 : 12 + 7 * Math.min(10, longest);

  const draw = () => {
    const context = prepare(canvas, left + columns.length * width, top + rows.length * height),
      table = colours()[1];
    for (let r = 0; r < rows.length; ++r) {
      for (let c = 0; c < columns.length; ++c) {
        const share = (value(r, c) ?? NaN) / (largest || 1);
        if (!Number.isFinite(share)) continue;
        context.fillStyle = asCss(table[Math.round(127.5 + 127.5 * Math.max(-1, Math.min(1, share)))]);
        context.fillRect(left + c * width, top + r * height, width, height);
      }
    }
    context.fillStyle = styleColour('--text');
    context.font = '12px ' + styleColour('--mono');
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    context.textAlign = 'right';
    if (height >= 11) rows.forEach((name, r) => context.fillText(name, left - 5, top + (r + 0.5) * height));
    context.textAlign = upright ? 'center' : 'left';
    if (width >= 11)
      columns.forEach((name, c) => {
        context.save();
        context.translate(left + (c + 0.5) * width, upright ? top - 9 : top - 4);
        if (!upright) context.rotate(-Math.PI / 2);
        context.fillText([...name].slice(0, 10).join(''), 0, 0);
        context.restore();
      });
    context.strokeStyle = styleColour('--mark');
    context.lineWidth = 2;
    if (row >= 0 && column >= 0) context.strokeRect(left + column * width, top + row * height, width, height);
  };
  const redraw = oncePerFrame(draw);
  const show = (r, c) => {
    if (r < 0 || c < 0 || r >= rows.length || c >= columns.length) return;
    [row, column] = [r, c];
    said.textContent = read(r, c);
    redraw();
  };
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    show(
      Math.floor((event.clientY - box.top - top) / height),
      Math.floor((event.clientX - box.left - left) / width),
    );
  });
  canvas.addEventListener('click', () => {
    if (row >= 0) pick?.(row, column);
  });
  canvas.addEventListener('keydown', (event) => {
    const [down, across] = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[
      event.key
    ] ?? [0, 0];
    if (event.key === 'Enter' && row >= 0) pick?.(row, column);
    if (!down && !across) return;
    event.preventDefault();
    show(Math.max(0, row) + down, Math.max(0, column) + across);
  });
  kDark.addEventListener('change', redraw);
  said.textContent = `Point at a cell. The strongest colours stand for ${number(-largest)} and ${number(largest)}.`;
  draw();
  document.fonts.ready.then(redraw);
  return make('div', {}, make('div', {class: 'wide'}, canvas), said);
}

function buildComposition(section) {
  const {baseline = 0, pairs} = study.composition;
  const kinds = [
    ['q', 'Q: into its queries'],
    ['k', 'K: into its keys'],
    ['v', 'V: into its values'],
  ].filter(([kind]) => pairs.some((pair) => Number.isFinite(pair[kind])));
  section.append(
    make(
      'p',
      {},
      'Whether a later head reads what an earlier one writes, from the weights alone: into its queries (Q), its keys (K) or its ' +
        `values (V). What random matrices of these sizes give, ${number(baseline, 3)}, is subtracted: 0 is chance.`,
    ),
  );
  const place = (name) => name.split('.').map(Number),
    order = (a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1];
  const from = [...new Set(pairs.map((pair) => pair.from))].sort(order),
    to = [...new Set(pairs.map((pair) => pair.to))].sort(order);
  const known = new Map(pairs.map((pair) => [pair.from + ' ' + pair.to, pair]));
  const above = (r, c, kind) => {
    const value = known.get(from[c] + ' ' + to[r])?.[kind];
    return Number.isFinite(value) ? value - baseline : null;
  };
  const strongest = pairs
    .flatMap((pair) => kinds.map(([kind]) => ({pair, kind, value: pair[kind] - baseline})))
    .filter((one) => one.value > 0)
    .sort((a, b) => b.value - a.value)
    .slice(0, 8);
  section.append(
    make(
      'p',
      {},
      'Strongest: ' +
        (strongest
          .map(
            (one) => `${one.pair.from} \u2192 ${one.pair.to} ${one.kind.toUpperCase()} ${signed(one.value)}`,
          )
          .join(', ') || 'none above chance') +
        '.',
    ),
  );
  const size = Math.max(3, Math.min(18, Math.floor(420 / Math.max(from.length, to.length))));
  const largest = Math.max(
    ...pairs.flatMap((pair) => kinds.map(([kind]) => Math.abs(pair[kind] - baseline))),
  );
  section.append(
    make(
      'div',
      {class: 'maps'},
      kinds.map(([kind, title]) =>
        make(
          'div',
          {},
          make('h3', {}, title),
          signedMap({
            rows: to,
            columns: from,
            value: (r, c) => above(r, c, kind),
            height: size,
            width: size,
            largest,
            label: title + ': a row for each later head, a column for each earlier one',
            read: (r, c) => `${from[c]} \u2192 ${to[r]}: ${signed(above(r, c, kind), 3)}`,
            pick: (r) => choose({head: to[r]}),
          }),
        ),
      ),
    ),
  );
}

function buildPatching(section) {
  const {clean = [], corrupt = [], heads = [], answer, wrong} = study.patching;
  const line = (name, tokens, others) =>
    make(
      'p',
      {class: 'patched'},
      name + ' ',
      tokens.map((token, i) => tokenElement(token, 'span', {class: token === others[i] ? '' : 'query'})),
    );
  section.append(
    make(
      'p',
      {},
      'The model reads the corrupted text, and one head\u2019s output at one token is taken from the clean text. 1: that alone brings the ' +
        'right answer back; 0: it changes nothing; below 0: it makes things worse.',
    ),
    line('clean', clean, corrupt),
    line('corrupted', corrupt, clean),
    make(
      'p',
      {},
      'Logit of the right answer ',
      tokenElement(answer ?? ''),
      ' minus that of the wrong one ',
      tokenElement(wrong ?? ''),
      `: ${signed(study.patching.clean_difference)} on the clean text, ${signed(study.patching.corrupt_difference)} on the corrupted one.`,
    ),
    signedMap({
      rows: heads.map(nameOf),
      columns: clean.map((token) => shown(token)),
      label: 'patching: a row for each head, a column for each token',
      value: (r, c) => heads[r].positions[c],
      height: heads.length > 60 ? 8 : 14,
      width: Math.max(3, Math.min(28, Math.floor(1000 / Math.max(1, clean.length)))),
      read: (r, c) =>
        `${nameOf(heads[r])} at token ${c} ${shown(clean[c])}: ${signed(heads[r].positions[c])}`,
      pick: (r) => choose({head: nameOf(heads[r])}),
    }),
  );
}
