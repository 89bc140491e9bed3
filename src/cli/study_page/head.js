// One head, enlarged: what it does in words, its pattern as a matrix or as lines, its numbers.

/// What a head does, and how sure that is, in a few sentences.
function sentencesOf(head) {
  const texts = [];
  const score = head.role ? head.scores?.[head.role] : null;
  if (score) {
    const [name, what] = kScores[head.role] ?? [head.role, ''];
    const where = score.offset ? ` (here ${score.offset} back)` : '';
    texts.push(
      `Role: ${head.label || name}. It ${what}${where}. Score ${number(score.value)}; ` +
        `by chance it would be ${number(score.chance)}` +
        (head.explained > score.chance ? `, by position alone ${number(head.explained)}` : '') +
        (Number.isFinite(score.p) ? ` (p ${pText(score.p)}).` : '.'),
    );
  } else {
    texts.push('No role: none of its scores is clearly above what chance and position give.');
  }
  const lost = head.ablation?.full;
  if (Number.isFinite(lost))
    texts.push(
      `Without it the loss ${lost < 0 ? 'falls' : 'rises'} by ${number(Math.abs(lost))} nats a token.`,
    );
  const group = (study.groups ?? []).find((entry) => entry.heads.includes(nameOf(head)));
  if (group?.redundant && group.role)
    texts.push(`It is not alone: ${listed(group.heads)} do the same, and cover for each other.`);
  return texts.join(' ');
}

function listed(words) {
  return words.length < 2
    ? words.join('')
    : words.slice(0, -1).join(', ') + ' and ' + words[words.length - 1];
}

/// The tokens of the text. The one that is looked at is outlined; the others are shaded by how much
/// it attends to them in the enlarged head.
function buildTokens(section) {
  const strip = make('div', {
    class: 'tokens',
    role: 'listbox',
    tabindex: '0',
    id: 'tokens',
    'aria-label': 'tokens; arrow keys move, Enter pins, Escape lets go',
  });
  const count = make('span', {class: 'quiet', id: 'token-count'});
  section.append(make('p', {}, count), strip);
  let elements = [];

  const fill = () => {
    const tokens = tokensNow();
    elements = tokens.map((token, i) =>
      tokenElement(token, 'span', {
        role: 'option',
        id: 'token-' + i,
        'data-at': String(i),
        title: described(i),
      }),
    );
    // Lines end where the text's lines end.
    strip.replaceChildren(
      ...elements.flatMap((element, i) => (tokens[i].endsWith('\n') ? [element, make('br')] : [element])),
    );
    count.textContent =
      `${tokens.length} token${tokens.length === 1 ? '' : 's'}. Point at one, or move with the ` +
      'arrow keys: the stronger the colour of another token, the more it is attended to.' +
      (placeOf(0) > 0
        ? ` They are a part of a longer text, from token ${placeOf(0)} on; what they attend to before it is not in this page.`
        : '');
  };
  const paint = oncePerFrame(() => {
    const i = queryNow(),
      head = headOf.get(chosen.head),
      scale = 1 / largestWeight();
    const weights = i === null || !head ? [] : weightsOf(head, i);
    elements.forEach((element, j) => shade(element, (weights[j] ?? 0) * scale));
    for (const [name, at] of [
      ['query', i],
      ['pinned', chosen.pinned],
    ]) {
      for (const element of strip.querySelectorAll('.' + name)) element.classList.remove(name);
      elements[at]?.classList.add(name);
    }
    for (const element of strip.querySelectorAll('[aria-selected]')) element.removeAttribute('aria-selected');
    elements[chosen.pinned]?.setAttribute('aria-selected', 'true');
    strip.setAttribute('aria-activedescendant', i === null ? '' : 'token-' + i);
  });
  const atOf = (event) => event.target.closest?.('[data-at]')?.dataset.at;
  strip.addEventListener('pointerover', (event) => {
    const at = atOf(event);
    choose({query: at === undefined ? null : Number(at)});
  });
  strip.addEventListener('pointerleave', () => choose({query: null}));
  strip.addEventListener('click', (event) => {
    const at = atOf(event);
    if (at !== undefined) choose({pinned: chosen.pinned === Number(at) ? null : Number(at)});
  });
  strip.addEventListener('keydown', (event) => {
    const to = moved(event, queryNow() ?? 0, tokensNow().length);
    if (to === null) return;
    choose({pinned: to, query: null});
    if (to >= 0) elements[to].scrollIntoView({block: 'nearest'});
  });
  on(['text'], fill);
  on(['query', 'pinned', 'head', 'text', 'normed'], paint);
  kDark.addEventListener('change', paint);
  fill();
  paint();
}

/// Where a key leads from a token; null for other keys.
function moved(event, from, tokens) {
  const to = {
    ArrowLeft: from - 1,
    ArrowUp: from - 1,
    ArrowRight: from + 1,
    ArrowDown: from + 1,
    Home: 0,
    End: tokens - 1,
    PageUp: from - 10,
    PageDown: from + 10,
    Enter: from,
  }[event.key];
  if (event.key === 'Escape') {
    choose({pinned: null, query: null});
    return null;
  }
  if (to === undefined || tokens === 0) return null;
  event.preventDefault();
  return Math.min(tokens - 1, Math.max(0, to));
}

/// The numbers of a head: each score beside its chance level, then what its removal costs.
function numbersOf(head) {
  const rows = Object.keys(kScores)
    .filter((key) => scoreOf(head, key))
    .map((key) => {
      const score = scoreOf(head, key);
      const most = Math.max(1, ...study.heads.map((other) => Math.abs(scoreOf(other, key)?.value ?? 0)));
      return make(
        'tr',
        {title: kScores[key][1], class: key === head.role ? 'mine' : null},
        make('th', {scope: 'row'}, kScores[key][0] + (score.offset ? ` -${score.offset}` : '')),
        make('td', {}, bar(score.value, score.chance, Math.min(0, score.value), most)),
        make('td', {class: 'number'}, number(score.value)),
        make('td', {class: 'number quiet'}, number(score.chance)),
        make('td', {class: 'number quiet'}, pText(score.p)),
        make('td', {class: 'quiet'}, notesOn(score)),
      );
    });
  return make(
    'div',
    {class: 'wide'},
    make(
      'table',
      {class: 'numbers'},
      make(
        'thead',
        {},
        make(
          'tr',
          {},
          ...['score', '', 'value', 'chance', 'p', ''].map((name, i) =>
            make('th', {class: i > 1 && i < 5 ? 'number' : null}, name),
          ),
        ),
      ),
      make('tbody', {}, rows),
    ),
  );
}
function notesOn(score) {
  const notes = [];
  if (score.on) notes.push('on ' + score.on);
  if (Number.isFinite(score.baseline))
    notes.push(
      `best fixed offset ${number(score.baseline)}` +
        (score.baseline_offset ? ` (-${score.baseline_offset})` : ''),
    );
  return notes.join('; ');
}

function buildHead(section) {
  const title = make('h2', {id: 'head-title'}),
    words = make('p', {id: 'head-words'});
  const read = make('p', {class: 'read', id: 'read', 'aria-live': 'polite'}),
    place = make('div', {class: 'view'});
  const numbers = make('div', {});
  const radio = (view, text) =>
    make(
      'label',
      {},
      make('input', {
        type: 'radio',
        name: 'view',
        value: view,
        checked: chosen.view === view,
        change: () => choose({view}),
      }),
      ' ' + text,
    );
  section.append(
    title,
    words,
    make(
      'fieldset',
      {class: 'choice'},
      make('legend', {class: 'unseen'}, 'view'),
      radio('matrix', 'matrix'),
      radio('lines', 'lines'),
    ),
    read,
    place,
    numbers,
  );
  const views = {matrix: matrixView(), lines: linesView()};

  const tell = () => {
    const i = queryNow(),
      j = chosen.key,
      head = headOf.get(chosen.head);
    if (!head || i === null) read.textContent = 'Point at a token.';
    else if (j !== null && j <= i) {
      read.textContent = `${described(i)} attends to ${described(j)}: ` + number(weightAt(head, i, j), 3);
    } else read.textContent = `${described(i)} attends most to ${lookOf(i, weightsOf(head, i))}`;
  };
  const draw = () => {
    const head = headOf.get(chosen.head);
    if (!head) return;
    title.textContent = 'Head ' + titleOf(head);
    words.textContent = sentencesOf(head);
    numbers.replaceChildren(numbersOf(head));
    if (patternOf(head)) {
      place.replaceChildren(views[chosen.view].element);
      views[chosen.view].draw();
    } else {
      place.replaceChildren(
        make(
          'p',
          {class: 'quiet'},
          'The pattern of this head is not in this page: it was left out by --layers or --heads.',
        ),
      );
    }
    tell();
  };
  const follow = oncePerFrame(() => {
    tell();
    if (patternOf(headOf.get(chosen.head) ?? {})) views[chosen.view].draw(true);
  });
  on(['head', 'view', 'text', 'normed', 'set'], draw);
  on(['query', 'pinned', 'key'], follow);
  kDark.addEventListener('change', draw);
  new ResizeObserver(oncePerFrame(draw)).observe(section);
  draw();
}
