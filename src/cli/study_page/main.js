// The page: its head, what can be chosen, and its sections, for whatever the document has.

/// A section with a title, in `parent`, unless `there` says that the document has nothing for it.
function addSection(parent, id, title, there, build) {
  if (!there) return;
  const section = make('section', {id, 'aria-label': title || null}, title ? make('h2', {}, title) : null);
  parent.append(section);
  build(section);
}

function factsOf() {
  const m = study.model ?? {},
    facts = [];
  if (m.layers) facts.push(`${m.layers} layers of ${m.heads} heads`);
  if (m.width) facts.push(`width ${m.width}`);
  if (m.context) facts.push(`context ${m.context}`);
  if (m.vocab) facts.push(`${m.vocab} tokens known` + (m.tokenizer ? ` (${m.tokenizer})` : ''));
  if (m.attention_only) facts.push('attention only');
  if (m.parameters) facts.push(`${m.parameters} parameters`);
  if (Number.isFinite(study.loss)) facts.push(`loss ${number(study.loss, 3)} nats a token`);
  const s = study.settings ?? {};
  if (s.sequences) facts.push(`scores over ${s.sequences} sequences of ${s.length} tokens`);
  return facts.join(', ') + '.';
}

function select(id, label, options, change) {
  const box = make(
    'select',
    {id, change: () => change(box.value)},
    options.map(([value, text]) => make('option', {value}, text)),
  );
  return make('label', {}, label + ' ', box);
}

function controls() {
  const count = (role) => study.heads.filter((head) => head.role === role).length;
  const roles = Object.keys(kScores).filter((role) => count(role) > 0);
  const chooser = make('div', {class: 'controls', role: 'group', 'aria-label': 'what is shown'});
  if (study.texts.length > 1)
    chooser.append(
      select(
        'text',
        'text',
        study.texts.map((text, i) => [String(i), plain(text.title ?? text.name ?? String(i))]),
        (value) =>
          choose({text: Number(value), query: null, key: null, pinned: study.texts[value].tokens.length - 1}),
      ),
    );
  chooser.append(
    select(
      'role',
      'heads',
      [
        ['', 'all'],
        ['any', 'with a role'],
        ...roles.map((role) => [role, `${roleName(role)} (${count(role)})`]),
        ['none', `without a role (${count(null)})`],
      ],
      (role) => choose({role}),
    ),
  );
  const sorts = [
    ['', 'layer and head'],
    ['role', 'role'],
    ...scoreKeys().map((key) => ['score:' + key, kScores[key][0]]),
    ...otherColumns().map((column) => [column.sort, column.name]),
  ];
  chooser.append(select('sort', 'order', sorts, (sort) => choose({sort})));
  on(['sort'], () => {
    chooser.querySelector('#sort').value = chosen.sort;
  });
  const sets = [
    ['scores', 'the best set for each'],
    ['on_data', 'data'],
    ['on_repeated', 'repeated random tokens'],
  ].filter(([set]) => study.heads.some((head) => head[set] && Object.keys(head[set]).length > 0));
  if (sets.length > 1) chooser.append(select('set', 'scores on', sets, (set) => choose({set})));
  if (kNorms.size > 0)
    chooser.append(
      make(
        'label',
        {
          title:
            'attention times the length of what is read: much attention to a short vector moves little (Kobayashi et al. 2020)',
        },
        make('input', {
          type: 'checkbox',
          id: 'normed',
          change: (event) => choose({normed: event.target.checked}),
        }),
        ' weight by value norm',
      ),
    );
  return chooser;
}

function buildPage() {
  const page = document.getElementById('page');
  const title = 'What each head does' + (study.run ? ': ' + plain(study.run) : '');
  document.title = title;
  const roled = study.heads.filter((head) => head.role);
  const first = roled.find((head) => head.role === 'prefix_matching') ?? roled[0] ?? study.heads[0];
  Object.assign(chosen, {
    head: first ? nameOf(first) : '',
    pinned: tokensNow().length ? tokensNow().length - 1 : null,
  });
  page.append(
    make('h1', {}, title),
    make('p', {class: 'quiet'}, factsOf()),
    make(
      'p',
      {},
      'Each attention head lets every token look back at earlier tokens, and copies something from where it looks. ' +
        'Each small picture below is one head: a row for each token of the text, coloured where it looks. ' +
        'Click on a head to enlarge it; point at a token to see what it looks at in every head.',
    ),
    controls(),
  );
  const both = make('div', {class: 'both'}),
    more = make('div', {class: 'more'});
  addSection(page, 'text-section', 'The text', study.texts.length > 0, buildTokens);
  page.append(both, more);
  addSection(both, 'grid-section', 'Heads', study.heads.length > 0, buildGrid);
  addSection(both, 'head-section', '', study.heads.length > 0, buildHead);
  // What is below the first screen comes piece by piece, so that the page answers from the start.
  const later = [
    ['scores-section', 'Scores of every head', scoreKeys().length > 0, buildScores],
    [
      'ablation-section',
      'What is lost without a head',
      study.heads.some((head) => head.ablation),
      buildAblation,
    ],
    ['groups-section', 'Heads that work together', study.groups?.length > 0, buildGroups],
    ['timeline-section', 'While it was trained', study.timeline?.length > 0, buildTimeline],
    [
      'attribution-section',
      'What speaks for the next token',
      study.attribution?.length > 0,
      buildAttribution,
    ],
    ['lens-section', 'The guess, layer by layer', study.lens?.length > 0, buildLens],
    ['composition-section', 'Heads that read heads', study.composition?.pairs?.length > 0, buildComposition],
    ['pruning-section', 'Removing heads', study.pruning, buildPruning],
    ['patching-section', 'Patching: which head carries the answer', study.patching, buildPatching],
  ];
  const next = () => {
    if (later.length === 0) return void (page.dataset.whole = '');
    try {
      addSection(more, ...later.shift());
    } finally {
      // a section that fails is reported by the browser, and takes no other with it
      setTimeout(next);
    }
  };
  requestAnimationFrame(() => setTimeout(next));
}
buildPage();
