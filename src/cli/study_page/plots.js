// Curves over an axis: the training timeline and the pruning curve.

const kSeries = 8; // colours that the style has for curves

/// Round numbers between two values, some five of them.
function ticks(least, most) {
  const rough = (most - least) / 5 || 1,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough),
    all = [];
  for (let k = Math.ceil(least / step - 1e-9); k * step <= most + step * 1e-9; ++k)
    all.push(Number((k * step).toPrecision(10)));
  return all;
}

/// Panels below each other over one axis. A panel: {name, height, series, zero, chance}; a series:
/// {name, points: [[x, y]], colour (a number; none: grey), plain (the text's colour), strong, dashed, band: [[x, least, most]]}.
/// tell(x) says in words what stands at x, one of the places; it is shown under the plot.
function plot(panels, axis, tell) {
  const box = make('div', {class: 'plot'}),
    read = make('p', {class: 'read', 'aria-live': 'polite'});
  const places = [
    ...new Set(panels.flatMap((panel) => panel.series.flatMap((series) => series.points.map(([x]) => x)))),
  ].sort((a, b) => a - b);
  const element = make('div', {}, box, read),
    left = 52,
    right = 22;
  let at = places.length - 1;

  const draw = () => {
    const width = Math.max(260, Math.min(element.clientWidth || 800, 900));
    const first = places[0] ?? 0,
      last = places[places.length - 1] ?? 1;
    const x = (value) =>
      left + (width - left - right) * (last > first ? (value - first) / (last - first) : 0.5);
    const height = panels.reduce((sum, panel) => sum + panel.height + 30, 0) + 24;
    const svg = makeSvg('svg', {
      width,
      height,
      tabindex: 0,
      role: 'img',
      'aria-label': panels.map((panel) => panel.name).join(' and ') + ' over ' + axis + '; arrow keys move',
    });
    let top = 22;
    for (const panel of panels) {
      drawPanel(svg, panel, x, top, left, width - right);
      top += panel.height + 30;
    }
    const bottom = top - 30;
    for (const tick of ticks(first, last))
      svg.append(makeSvg('text', {x: x(tick), y: bottom + 15, 'text-anchor': 'middle'}, String(tick)));
    svg.append(makeSvg('text', {x: (left + width) / 2, y: bottom + 30, 'text-anchor': 'middle'}, axis));
    const line = makeSvg('path', {class: 'cursor'});
    svg.append(line);
    const show = (next) => {
      at = Math.min(places.length - 1, Math.max(0, next));
      if (at < 0) return;
      line.setAttribute('d', `M${x(places[at])} 22V${bottom}`);
      read.textContent = tell(places[at]);
    };
    svg.addEventListener('pointermove', (event) => {
      const from = event.clientX - svg.getBoundingClientRect().left;
      let best = 0;
      places.forEach((place, i) => {
        if (Math.abs(x(place) - from) < Math.abs(x(places[best]) - from)) best = i;
      });
      show(best);
    });
    svg.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      event.preventDefault();
      show(at + step);
    });
    box.replaceChildren(svg);
    show(at);
  };
  new ResizeObserver(oncePerFrame(draw)).observe(element);
  return element;
}

function drawPanel(svg, panel, x, top, from, to) {
  const all = panel.series
    .flatMap((series) => [
      ...series.points.map(([, y]) => y),
      ...(series.band ?? []).flatMap(([, a, b]) => [a, b]),
    ])
    .filter(Number.isFinite);
  const least = panel.zero ? Math.min(0, ...all) : Math.min(...all),
    most = Math.max(...all, panel.zero ? 0.1 : -Infinity);
  const y = (value) => top + panel.height * (1 - (most > least ? (value - least) / (most - least) : 0.5));
  svg.append(makeSvg('text', {x: from, y: top - 8, class: 'panel'}, panel.name));
  for (const tick of ticks(least, most))
    svg.append(
      makeSvg('path', {class: 'line', d: `M${from} ${y(tick)}H${to}`}),
      makeSvg('text', {x: from - 6, y: y(tick) + 4, 'text-anchor': 'end'}, String(tick)),
    );
  if (Number.isFinite(panel.chance))
    svg.append(
      makeSvg('path', {class: 'chance-line', d: `M${from} ${y(panel.chance)}H${to}`}),
      makeSvg('text', {x: to, y: y(panel.chance) - 4, 'text-anchor': 'end'}, 'chance'),
    );
  for (const series of panel.series) {
    const points = series.points.filter(([, value]) => Number.isFinite(value));
    const style = series.plain
      ? 'plain'
      : series.colour === undefined
        ? 'grey'
        : 's' + (series.colour % kSeries);
    if (series.band) {
      const up = series.band.map(([p, , high]) => `${x(p)} ${y(high)}`),
        down = series.band.map(([p, low]) => `${x(p)} ${y(low)}`).reverse();
      svg.append(makeSvg('path', {class: 'band ' + style, d: 'M' + [...up, ...down].join('L') + 'Z'}));
    }
    const curve = makeSvg('path', {
      d: points.map(([p, value], i) => `${i ? 'L' : 'M'}${x(p).toFixed(1)} ${y(value).toFixed(1)}`).join(''),
      class: `curve ${style}${series.strong ? ' strong' : ''}${series.dashed ? ' dashed' : ''}`,
    });
    curve.append(makeSvg('title', {}, series.name));
    svg.append(curve);
  }
}

function legendOf(entries) {
  return make(
    'ul',
    {class: 'keys'},
    entries.map(({name, colour, click, dashed}) =>
      make(
        'li',
        {},
        make('span', {
          class: `swatch ${colour === undefined ? 'grey' : 's' + (colour % kSeries)}${dashed ? ' dashed' : ''}`,
        }),
        click ? make('button', {type: 'button', click}, name) : name,
      ),
    ),
  );
}

/// Scores of every head over the steps, under the loss: heads are seen to be born.
function buildTimeline(section) {
  const line = study.timeline,
    keys = Object.keys(kScores).filter((key) =>
      line.some((entry) => entry.heads?.some((head) => Number.isFinite(head.scores?.[key]))),
    );
  let key = keys.includes('prefix_matching') ? 'prefix_matching' : keys[0];
  const place = make('div', {});
  section.append(
    make(
      'p',
      {},
      'Above the loss, below the score of each head while the model was trained. When a score jumps, a head is born: ' +
        'heads of induction often come suddenly, and the loss falls with them.',
    ),
  );
  if (keys.length > 1) {
    const box = select(
      'timeline-score',
      'score',
      keys.map((k) => [k, kScores[k][0]]),
      (value) => {
        key = value;
        draw();
      },
    );
    box.firstElementChild.value = key;
    section.append(make('div', {class: 'choice'}, box));
  }
  section.append(place);

  const draw = () => {
    const evaluatedOn = line.some((entry) => entry.held_out === false) ? 'training data' : 'held-out data';
    const lossOf = (which) => line.map((entry) => [entry.step, entry[which]]);
    const heads = headsNow(),
      valueOf = (entry, head) =>
        entry.heads?.find((one) => one.layer === head.layer && one.head === head.head)?.scores?.[key];
    const final = (head) => Math.max(...line.map((entry) => valueOf(entry, head) ?? -Infinity));
    const named = [...heads].sort((a, b) => final(b) - final(a)).slice(0, kSeries);
    const series = heads.map((head) => ({
      name: titleOf(head),
      colour: named.includes(head) ? named.indexOf(head) : undefined,
      strong: nameOf(head) === chosen.head,
      points: line.map((entry) => [entry.step, valueOf(entry, head)]),
    }));
    series.sort((a, b) => (b.colour ?? 99) - (a.colour ?? 99));
    const chances = study.heads.map((head) => head.scores?.[key]?.chance).filter(Number.isFinite);
    const chance = chances.reduce((sum, one) => sum + one, 0) / chances.length;
    const tell = (step) => {
      const entry = line.find((one) => one.step === step),
        best = named.slice(0, 4).map((head) => `${nameOf(head)} ${number(valueOf(entry, head))}`);
      return (
        `step ${step}: loss ${number(entry.train_loss, 3)}` +
        (Number.isFinite(entry.val_loss) ? `, on ${evaluatedOn} ${number(entry.val_loss, 3)}` : '') +
        (best.length ? '; ' + best.join(', ') : '')
      );
    };
    const loss = [
      {name: 'training', points: lossOf('train_loss'), dashed: true},
      {name: evaluatedOn, points: lossOf('val_loss'), plain: true},
    ].filter((one) => one.points.some(([, value]) => Number.isFinite(value)));
    place.replaceChildren(
      plot(
        [
          {name: `loss, nats a token (dashed: training; solid: ${evaluatedOn})`, height: 110, series: loss},
          {name: `${kScores[key]?.[0] ?? 'score'}, each head`, height: 220, zero: true, chance, series},
        ].filter((panel) => panel.series.length),
        'step',
        tell,
      ),
      legendOf([
        ...named.map((head, i) => ({
          name: titleOf(head),
          colour: i,
          click: () => choose({head: nameOf(head)}),
        })),
        ...(heads.length > named.length ? [{name: 'other heads'}] : []),
      ]),
    );
  };
  on(['role', 'head'], draw);
  draw();
}

function buildPruning(section) {
  const {by_importance: best = [], random = []} = study.pruning;
  section.append(
    make(
      'p',
      {},
      'The loss when more and more heads are removed: the least important ones first, against heads drawn at random ' +
        '(the band is from the luckiest draw to the unluckiest). The longer the first curve stays flat, the more heads can be spared.',
    ),
  );
  const series = [
    {
      name: 'random',
      colour: 1,
      points: random.map((r) => [r.removed, r.loss]),
      band: random
        .filter((r) => Number.isFinite(r.least) && Number.isFinite(r.most))
        .map((r) => [r.removed, r.least, r.most]),
    },
    {name: 'least important first', colour: 0, strong: true, points: best.map((r) => [r.removed, r.loss])},
  ].filter((one) => one.points.length);
  for (const one of series) if (one.band?.length === 0) delete one.band;
  const at = (list, removed) => list.find((entry) => entry.removed === removed)?.loss;
  section.append(
    plot(
      [{name: 'loss, nats a token', height: 220, series}],
      'heads removed',
      (removed) =>
        `${removed} removed: ${number(at(best, removed), 3)} by importance, ${number(at(random, removed), 3)} at random`,
    ),
    legendOf([
      {name: 'least important first', colour: 0},
      {name: 'at random', colour: 1},
    ]),
  );
}
