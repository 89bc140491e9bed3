// What the model says next, and why: logit attribution and the logit lens.

/// Of each position: what each component adds to the logit of the token that follows.
function buildAttribution(section) {
  section.append(
    make(
      'p',
      {},
      'What speaks for the token that comes next: the model adds up what its parts write, and each part\u2019s share of the ' +
        'next token\u2019s logit can be told. Blue: for it; orange: against it. For the last token the likeliest one is taken.',
    ),
  );
  const bars = make('div', {id: 'attribution-bars'}),
    map = make('div', {});
  section.append(bars, map);
  const entryNow = () => study.attribution.find((entry) => entry.text === chosen.text);
  const tell = () => {
    const entry = entryNow(),
      i = queryNow(),
      tokens = tokensNow();
    if (!entry || i === null)
      return bars.replaceChildren(
        make('p', {class: 'quiet'}, entry ? 'Point at a token of the text.' : 'Not computed for this text.'),
      );
    const parts = entry.components.map((name, c) => ({name, value: entry.values[c]?.[i] ?? 0}));
    if (Number.isFinite(entry.remainder?.[i])) parts.push({name: 'remainder', value: entry.remainder[i]});
    parts.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const most = Math.max(1e-9, ...parts.map((part) => Math.abs(part.value))),
      top = parts.slice(0, 10),
      rest = parts.slice(10);
    if (rest.length)
      top.push({name: `${rest.length} more`, value: rest.reduce((sum, part) => sum + part.value, 0)});
    bars.replaceChildren(
      make(
        'p',
        {},
        `After token ${placeOf(i)} `,
        tokenElement(tokens[i]),
        i + 1 < tokens.length ? ' comes ' : ', the last one here: ',
        i + 1 < tokens.length
          ? tokenElement(tokens[i + 1])
          : 'what follows, or at the end of the text the likeliest token',
        `; its logit is ${number(entry.logits?.[i])}.`,
      ),
      make(
        'table',
        {class: 'numbers'},
        make(
          'tbody',
          {},
          top.map((part) =>
            make(
              'tr',
              {},
              make('th', {scope: 'row'}, part.name),
              make('td', {}, bar(part.value, null, -most, most)),
              make('td', {class: 'number'}, signed(part.value)),
            ),
          ),
        ),
      ),
    );
  };
  const draw = () => {
    const entry = entryNow(),
      tokens = tokensNow();
    if (!entry) return map.replaceChildren();
    map.replaceChildren(
      signedMap({
        rows: entry.components,
        columns: tokens.map((token) => shown(token)),
        label: 'attribution: a row for each part, a column for each token',
        value: (r, c) => entry.values[r]?.[c],
        height: entry.components.length > 60 ? 8 : 14,
        width: Math.max(2, Math.min(14, Math.floor(1000 / tokens.length))),
        read: (r, c) => `${entry.components[r]}, after ${described(c)}: ${signed(entry.values[r]?.[c])}`,
        pick: (r, c) => {
          choose({pinned: c, query: null});
          if (headOf.has(entry.components[r])) choose({head: entry.components[r]});
        },
      }),
    );
  };
  on(['text'], draw);
  on(['query', 'pinned', 'text'], oncePerFrame(tell));
  draw();
  tell();
}

/// What the model would say if it stopped after each layer.
function buildLens(section) {
  const body = make('tbody', {}),
    top = make('tr', {});
  section.append(
    make(
      'p',
      {},
      'What the model would say next if it stopped after each layer: the likeliest token, the stronger the colour the surer; the next ones when you point at it. ' +
        'A box around it: that is what really comes next.',
    ),
    make(
      'div',
      {class: 'wide tall', tabindex: '0'},
      make('table', {class: 'lens', id: 'lens'}, make('thead', {}, top), body),
    ),
  );
  const draw = () => {
    const entry = study.lens.find((one) => one.text === chosen.text),
      tokens = tokensNow();
    top.replaceChildren(
      ...['', 'token', ...(entry?.layers ?? [])].map((name) => make('th', {scope: 'col'}, name)),
    );
    if (!entry)
      return body.replaceChildren(
        make('tr', {}, make('td', {colspan: '2', class: 'quiet'}, 'Not computed for this text.')),
      );
    body.replaceChildren(
      ...tokens.map((token, i) =>
        make(
          'tr',
          {'data-at': String(i)},
          make('th', {scope: 'row', class: 'number'}, String(placeOf(i))),
          make('td', {}, tokenElement(token)),
          ...entry.layers.map((name, layer) => {
            const guesses = entry.top[layer]?.[i] ?? [],
              best = guesses[0];
            if (!best) return make('td', {});
            const cell = make(
              'td',
              {title: guesses.map((guess) => `${shown(guess.token)} ${number(guess.p)}`).join(', ')},
              tokenElement(best.token, 'span', {class: best.token === tokens[i + 1] ? 'right' : ''}),
              make('small', {}, ' ' + number(best.p)),
            );
            shade(cell, best.p ** 2);
            return cell;
          }),
        ),
      ),
    );
    mark();
  };
  const mark = oncePerFrame(() => {
    for (const row of body.querySelectorAll('.mine')) row.classList.remove('mine');
    body.children[queryNow() ?? -1]?.classList.add('mine');
  });
  body.addEventListener('click', (event) => {
    const at = event.target.closest('[data-at]')?.dataset.at;
    if (at !== undefined) choose({pinned: Number(at), query: null});
  });
  on(['text'], draw);
  on(['query', 'pinned'], mark);
  kDark.addEventListener('change', draw);
  draw();
}
