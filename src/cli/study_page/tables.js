// Every head's numbers: scores beside their chance levels, what removing it costs, groups.

/// The columns after the scores: key for sorting, name, explanation, value of a head.
function otherColumns() {
  const columns = [];
  for (const [key, [name, what]] of Object.entries(kAblations))
    columns.push({
      sort: 'ablation:' + key,
      name,
      what: 'rise of the loss in nats: ' + what,
      show: signed,
      of: (head) => head.ablation?.[key],
    });
  columns.push({
    sort: 'importance',
    name: 'importance',
    what: 'how much the loss would change with the head, to first order (Michel et al. 2019)',
    show: number,
    of: (head) => head.importance,
  });
  for (const [key, [name, what]] of Object.entries(kCircuits))
    columns.push({
      sort: 'copying:' + key,
      name,
      what: 'from the weights alone; ' + what,
      show: number,
      of: (head) => head.copying?.[key],
    });
  return columns.filter((column) => study.heads.some((head) => Number.isFinite(column.of(head))));
}

function buildScores(section) {
  const body = make('tbody', {}),
    top = make('tr', {});
  const table = make('table', {class: 'scores', id: 'scores'}, make('thead', {}, top), body);
  section.append(
    make(
      'p',
      {},
      'Each cell is a score, and under it in small the value that chance gives: the tick in the bar. ' +
        `Bold: above chance with p below ${study.settings?.alpha ?? 0.05}, which may still be too little to matter. ` +
        'p is never less than what a permutation test would give: an upper bound; of entropy, confidence and mean ' +
        'distance it comes from the rank among the heads of untrained models. ' +
        'Click on a title to sort by it. Removal is the rise of the loss in nats a token.',
    ),
    make('div', {class: 'wide tall', tabindex: '0'}, table),
  );

  const draw = () => {
    const keys = scoreKeys(),
      others = otherColumns();
    const sorter = (sort, name, what) =>
      make(
        'th',
        {scope: 'col', class: 'number', 'aria-sort': chosen.sort === sort ? 'descending' : null},
        make(
          'button',
          {type: 'button', title: what, click: () => choose({sort: chosen.sort === sort ? '' : sort})},
          name,
        ),
      );
    top.replaceChildren(
      make('th', {scope: 'col'}, 'head'),
      make('th', {scope: 'col'}, 'role'),
      ...keys.map((key) => sorter('score:' + key, ...kScores[key])),
      ...others.map((column) => sorter(column.sort, column.name, column.what)),
    );
    const largest = new Map(
      keys.map((key) => [
        key,
        Math.max(1, ...study.heads.map((head) => Math.abs(scoreOf(head, key)?.value ?? 0))),
      ]),
    );
    const ranges = new Map(
      others.map((column) => {
        const values = study.heads.map((head) => column.of(head) ?? 0);
        return [column.sort, [Math.min(0, ...values), Math.max(1e-9, ...values)]];
      }),
    );
    body.replaceChildren(
      ...headsNow().map((head) =>
        make(
          'tr',
          {'data-head': nameOf(head), class: chosen.head === nameOf(head) ? 'mine' : null},
          make(
            'th',
            {scope: 'row'},
            make('button', {type: 'button', click: () => choose({head: nameOf(head)})}, nameOf(head)),
          ),
          make('td', {}, head.label || '\u2013'),
          ...keys.map((key) => scoreCell(head, key, largest.get(key))),
          ...others.map((column) => {
            const value = column.of(head);
            return make(
              'td',
              {class: 'number'},
              column.show(value, 3),
              Number.isFinite(value) ? bar(value, null, ...ranges.get(column.sort)) : null,
            );
          }),
        ),
      ),
    );
  };
  on(['role', 'sort', 'set'], draw);
  on(['head'], () => {
    for (const row of body.children) row.classList.toggle('mine', row.dataset.head === chosen.head);
  });
  draw();
}

function scoreCell(head, key, most) {
  const score = scoreOf(head, key);
  if (!score) return make('td', {class: 'number quiet'}, '\u2013');
  const sure =
    Number.isFinite(score.p) && score.p < (study.settings?.alpha ?? 0.05) && score.value > score.chance;
  const notes = [
    `chance ${number(score.chance, 3)}`,
    Number.isFinite(score.p) ? `p ${pText(score.p)}` : '',
    notesOn(score),
  ];
  return make(
    'td',
    {class: 'number', title: notes.filter(Boolean).join('; ')},
    make(
      sure ? 'b' : 'span',
      {class: 'value'},
      number(score.value) + (score.offset ? ` (-${score.offset})` : ''),
    ),
    bar(score.value, score.chance, Math.min(0, score.value), most),
    make('small', {class: 'chance'}, number(score.chance)),
  );
}

/// Ablation bars: beside each its head's strongest score, so that doing and mattering can be compared.
function buildAblation(section) {
  const kinds = Object.keys(kAblations).filter((kind) =>
    study.heads.some((head) => Number.isFinite(head.ablation?.[kind])),
  );
  // Of one way there is a standard error.
  const errorOf = (head, kind) => head.ablation?.[kind + '_error'];
  const values = study.heads.flatMap((head) =>
    kinds.flatMap((kind) => [-1, 1].map((side) => (head.ablation?.[kind] ?? 0) + side * (errorOf(head, kind) ?? 0))),
  );
  const most = Math.max(1e-9, ...values),
    least = Math.min(0, ...values);
  section.append(
    make(
      'p',
      {},
      'How much the loss rises, in nats a token, when one head is taken away. A head may do its ' +
        'work well and yet cost nothing: then others do it too, or the text does not need it.' +
        (study.ablated_on
          ? ` Ablated on ${study.ablated_on.sequences} sequences of ${study.ablated_on.length} tokens; ` +
            'the thin line is one standard error to each side.'
          : ''),
    ),
    make(
      'ul',
      {class: 'legend'},
      kinds.map((kind) =>
        make('li', {}, make('b', {}, kAblations[kind][0]), ': ' + kAblations[kind][1] + '.'),
      ),
    ),
  );
  const body = make('tbody', {});
  section.append(
    make(
      'div',
      {class: 'wide tall', tabindex: '0'},
      make(
        'table',
        {class: 'ablation', id: 'ablation'},
        make(
          'thead',
          {},
          make(
            'tr',
            {},
            ...['head', 'role', 'score', 'chance', ...kinds.map((kind) => kAblations[kind][0])].map(
              (name, i) => make('th', {scope: 'col', class: i > 1 ? 'number' : null}, name),
            ),
          ),
        ),
        body,
      ),
    ),
  );
  const draw = () => {
    body.replaceChildren(
      ...headsNow().map((head) => {
        const score = head.role ? head.scores?.[head.role] : null;
        return make(
          'tr',
          {},
          make('th', {scope: 'row'}, nameOf(head)),
          make('td', {}, head.label || '\u2013'),
          make('td', {class: 'number'}, number(score?.value)),
          make('td', {class: 'number quiet'}, number(score?.chance)),
          ...kinds.map((kind) =>
            make(
              'td',
              {class: 'number'},
              signed(head.ablation?.[kind], 3) +
                (Number.isFinite(errorOf(head, kind)) ? ' \u00b1' + number(errorOf(head, kind), 3) : ''),
              bar(head.ablation?.[kind], null, least, most, errorOf(head, kind)),
            ),
          ),
        );
      }),
    );
  };
  on(['role', 'sort', 'set'], draw);
  draw();
}

function buildGroups(section) {
  section.append(
    make(
      'p',
      {},
      'Heads that do the same, taken away together. When that costs far more than what they cost one by one, ' +
        'they are redundant: each alone can be spared, because the others do its work.',
    ),
  );
  for (const group of study.groups) {
    const name = group.label || roleName(group.role),
      heads = listed(group.heads);
    const together =
      `Removing ${heads} together raises the loss by ${number(group.full, 3)} nats; ` +
      `removing them one at a time costs ${number(group.sum_of_single, 3)} in all. `;
    section.append(
      make(
        'p',
        {class: 'group'},
        make('b', {}, `${name}: `),
        together,
        group.redundant && group.role
          ? make('b', {}, 'Redundant: they cover for each other.')
          : group.redundant
            ? 'They cost more together than one by one, though they share no role.'
            : group.redundant === false
              ? 'Not shown to be redundant.'
              : '',
        make(
          'span',
          {class: 'quiet'},
          ['frozen_patterns', 'mean', 'resample']
            .filter((kind) => Number.isFinite(group[kind]))
            .map((kind) => ` ${kAblations[kind][0]} ${signed(group[kind], 3)}`)
            .join(','),
        ),
      ),
    );
  }
}
