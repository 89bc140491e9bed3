// The grid of heads: a small heat map each, and what each makes of the token that is looked at.

const kTile = 96; // pixels a side of a small heat map

/// In words, what query i attends to most: `"a" 93%, 2 back`.
function lookOf(i, weights) {
  const tokens = tokensNow();
  let best = 0;
  for (let j = 1; j <= i; ++j) if (weights[j] > weights[best]) best = j;
  const weight = weights[best];
  const much = chosen.normed ? number(weight) : Math.round(100 * weight) + '%';
  return shortened(tokens[best], 8) + ' ' + much + (best === i ? ', itself' : `, ${i - best} back`);
}

function tileOf(head) {
  const map = make('canvas', {class: 'map', 'aria-hidden': 'true'});
  const row = make('canvas', {class: 'row', 'aria-hidden': 'true'});
  const look = make('span', {class: 'look'});
  const button = make(
    'button',
    {
      type: 'button',
      class: 'tile',
      'data-head': nameOf(head),
      tabindex: '-1',
      title: titleOf(head) + (head.role ? ': ' + (kScores[head.role]?.[1] ?? '') : ''),
      click: () => choose({head: nameOf(head)}),
    },
    make('span', {class: 'name'}, nameOf(head), make('span', {class: 'label'}, ' ' + (head.label ?? ''))),
    make('span', {class: 'frame'}, map),
    row,
    look,
  );
  if (head.role) button.dataset.role = head.role;
  return {head, button, map, row, look, painted: false, seen: false};
}

function buildGrid(section) {
  const grid = make('div', {class: 'grid', role: 'group', 'aria-label': 'heads; arrow keys move'});
  const count = make('p', {class: 'quiet', 'aria-live': 'polite'});
  section.append(count, grid);
  const tiles = new Map(study.heads.map((head) => [nameOf(head), tileOf(head)]));
  let shownTiles = [];

  const paint = (tile) => {
    tile.painted = true;
    const image = patternImage(tile.head, 0, 0, tokensNow().length, kTile);
    tile.button.classList.toggle('empty', !image);
    if (image) put(tile.map, image);
  };
  const look = (tile) => {
    const i = queryNow(),
      tokens = tokensNow().length;
    const there = i !== null && i < tokens && patternOf(tile.head);
    const weights = there ? weightsOf(tile.head, i) : new Float32Array(0);
    tile.look.textContent = there ? lookOf(i, weights) : '\u00A0';
    putRow(tile.row, weights, tokens);
  };
  // Tiles out of sight are left until they come into it.
  const observer = new IntersectionObserver(
    (entries) => {
      for (const {target, isIntersecting} of entries) {
        const tile = tiles.get(target.dataset.head);
        tile.seen = isIntersecting;
        if (isIntersecting && tile.painted) look(tile);
      }
    },
    {rootMargin: '200px'},
  );
  for (const tile of tiles.values()) observer.observe(tile.button);
  // Patterns are decoded a few milliseconds at a time, so that a large page answers meanwhile.
  let working = false;
  const work = () => {
    const until = performance.now() + 20;
    for (const tile of [...shownTiles.filter((one) => one.seen), ...shownTiles]) {
      if (tile.painted) continue;
      paint(tile);
      look(tile);
      if (performance.now() > until) return void setTimeout(work);
    }
    working = false;
  };
  const repaint = () => {
    for (const tile of tiles.values()) tile.painted = false;
    if (working) return;
    working = true;
    work();
  };
  const lookAll = oncePerFrame(() => {
    const i = queryNow(),
      tokens = tokensNow().length;
    grid.classList.toggle('looking', i !== null);
    grid.style.setProperty('--query', i === null ? 0 : (100 * (i + 0.5)) / tokens);
    for (const tile of shownTiles) if (tile.painted && tile.seen) look(tile);
  });
  const mark = () => {
    for (const [name, tile] of tiles) {
      tile.button.setAttribute('aria-pressed', name === chosen.head);
      tile.button.tabIndex = name === chosen.head ? 0 : -1;
    }
    if (!shownTiles.some((tile) => tile.head === headOf.get(chosen.head)) && shownTiles[0])
      shownTiles[0].button.tabIndex = 0;
  };

  const arrange = () => {
    const heads = headsNow();
    const whole = chosen.role === '' && chosen.sort === '' && heads.length === kLayers * kHeads;
    shownTiles = heads.map((head) => tiles.get(nameOf(head)));
    grid.classList.toggle('whole', whole);
    grid.classList.toggle('many', whole && kHeads > 8);
    grid.style.setProperty('--columns', kHeads);
    const children = [];
    if (whole) {
      children.push(make('span', {}));
      for (let h = 0; h < kHeads; ++h) children.push(make('span', {class: 'across'}, 'head ' + h));
    }
    heads.forEach((head, i) => {
      if (whole && i % kHeads === 0) children.push(make('span', {class: 'down'}, 'layer ' + head.layer));
      children.push(tiles.get(nameOf(head)).button);
    });
    grid.replaceChildren(...children);
    count.textContent =
      heads.length === study.heads.length
        ? `All ${heads.length} heads.`
        : `${heads.length} of ${study.heads.length} heads.`;
    mark();
    repaint();
  };

  grid.addEventListener('keydown', (event) => {
    const at = shownTiles.findIndex((tile) => tile.button === document.activeElement);
    if (at < 0) return;
    const columns = Math.max(
      1,
      shownTiles.filter((tile) => tile.button.offsetTop === shownTiles[0].button.offsetTop).length,
    );
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns,
      Home: -at,
      End: shownTiles.length - 1 - at,
    };
    const to = shownTiles[at + steps[event.key]];
    if (!to) return;
    event.preventDefault();
    to.button.focus();
    choose({head: nameOf(to.head)});
  });
  on(['role', 'sort', 'set'], arrange);
  on(['head'], mark);
  on(['text', 'normed'], repaint);
  on(['query', 'pinned', 'text', 'normed'], lookAll);
  kDark.addEventListener('change', repaint);
  arrange();
  lookAll();
}
