// The document of --json, the patterns, and what is chosen: everything else draws from here.

/// Of each score: what people call it, and what a head that has it does.
const kScores = {
  previous_token: ['previous token', 'looks at the token just before'],
  current_token: ['current token', 'looks at the token itself'],
  first_token: [
    'first token',
    'looks at the very first token, which often means that it has nothing to do here',
  ],
  fixed_offset: ['fixed offset', 'looks a fixed number of tokens back'],
  duplicate_token: ['duplicate token', 'looks at earlier copies of the same token'],
  prefix_matching: [
    'induction',
    'looks at what came after an earlier copy of this token: what followed once may follow again',
  ],
  copying: ['copying', 'makes the tokens that it looks at more likely to come next'],
  subject: ['subject of verb', 'looks from a verb at its subject'],
  antecedent: ['antecedent of pronoun', 'looks from a pronoun at the one it stands for'],
  sense: ['sense of bank', 'looks from a word with two senses at the word that decides between them'],
  entropy: ['entropy', 'how widely the attention is spread, in nats; 0 is all on one token'],
  confidence: ['confidence', 'the largest attention of a row, on average'],
  mean_distance: ['mean distance', 'how many tokens back it looks, on average'],
  locality: ['locality', 'how much of the attention is on the last five tokens, this one included'],
};
const kAblations = {
  full: ['removed', 'its output is set to zero, and whatever depends on it changes too'],
  frozen_patterns: [
    'patterns frozen',
    'its output is set to zero, but all attention patterns stay as they were: what it adds directly',
  ],
  mean: ['mean', 'its output is replaced by its mean over all tokens of the data'],
  resample: ['resampled', 'its output is replaced by that at the same place of another text'],
};
const kCircuits = {
  ov_eigenvalues: ['OV eigenvalues', 'near 1: what it reads it writes again, that is, it copies'],
  qk_eigenvalues: ['QK eigenvalues', 'near 1: a token looks for tokens like itself'],
  ov_top1: ['OV top 1', 'share of tokens that raise themselves more than any other token'],
  ov_top5: ['OV top 5', 'share of tokens that are among the five they raise most'],
  ov_top1_effective: ['OV top 1, effective', 'the same, with what the first MLP makes of a token'],
  ov_top5_effective: ['OV top 5, effective', 'the same, with what the first MLP makes of a token'],
};

const study = JSON.parse(document.getElementById('document').textContent);
study.texts ??= [];
study.heads ??= [];
const kLayers = study.model?.layers ?? 1 + Math.max(0, ...study.heads.map((head) => head.layer));
const kHeads = study.model?.heads ?? 1 + Math.max(0, ...study.heads.map((head) => head.head));

function nameOf(head) {
  return head.layer + '.' + head.head;
}
const headOf = new Map(study.heads.map((head) => [nameOf(head), head]));

/// "1.0 induction".
function titleOf(head) {
  return head.label ? nameOf(head) + ' ' + head.label : nameOf(head);
}

/// What is chosen. Change it by choose(), which tells whoever said on() for that key.
const chosen = {
  text: 0,
  query: null,
  pinned: null,
  key: null,
  head: '',
  view: 'matrix',
  role: '',
  sort: '',
  set: 'scores',
  normed: false,
};
const kListeners = [];

function on(keys, listener) {
  kListeners.push([keys, listener]);
}
function choose(changes) {
  const changed = Object.keys(changes).filter((key) => chosen[key] !== changes[key]);
  if (changed.length === 0) return;
  Object.assign(chosen, changes);
  for (const [keys, listener] of kListeners) if (keys.some((key) => changed.includes(key))) listener();
}

/// The same call, once a frame at most, however often it is asked for.
function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

function tokensNow() {
  return study.texts[chosen.text]?.tokens ?? [];
}
/// The number of a token in the text, of which the page may hold a range.
function placeOf(i) {
  return (study.texts[chosen.text]?.start ?? 0) + i;
}
/// "token 12 a", for people.
function described(i) {
  return `token ${placeOf(i)} ${shown(tokensNow()[i])}`;
}
/// The query that is looked at: under the pointer, or else pinned.
function queryNow() {
  return chosen.query ?? chosen.pinned;
}

/// 16-bit numbers, low byte first, from base64.
function numbersFrom(text) {
  const bytes = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(text)
    : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer),
    numbers = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < numbers.length; ++i) numbers[i] = view.getUint16(2 * i, true);
  return numbers;
}

const kPatterns = study.texts.map(() => new Map());

/// The lower triangle of a head's pattern in the chosen text, row by row, as 16-bit numbers; null
/// when the page does not have it. Decoded when first asked for.
function patternOf(head) {
  const known = kPatterns[chosen.text]?.get(head);
  if (known !== undefined) return known;
  const element = document.getElementById(`pattern-${chosen.text}-${head.layer}-${head.head}`);
  let pattern = null;
  if (element) {
    pattern = numbersFrom(element.textContent);
    element.remove(); // its text is as large again
  }
  kPatterns[chosen.text]?.set(head, pattern);
  return pattern;
}

/// Of the chosen text, while attention is weighted by ||f(x_j)||: these norms by head, and the
/// largest of them. Else null.
const kNorms = new Map(
  (study.value_norms ?? []).map(({text, heads}) => [
    text,
    {heads, largest: Math.max(...Object.values(heads).map((norms) => Math.max(...norms))) || 1},
  ]),
);
function normsNow() {
  return chosen.normed ? (kNorms.get(chosen.text) ?? null) : null;
}
function normsOf(head) {
  return normsNow()?.heads[nameOf(head)] ?? null;
}
/// What the strongest colour stands for.
function largestWeight() {
  return normsNow()?.largest ?? 1;
}

/// How much query i attends to key j, weighted if that is chosen.
function weightAt(head, i, j) {
  const pattern = patternOf(head);
  if (!pattern || j > i) return 0;
  const norms = normsOf(head);
  return (pattern[(i * (i + 1)) / 2 + j] / 65535) * (norms ? (norms[j] ?? 0) : 1);
}

/// The same for all keys that query i sees.
function weightsOf(head, i) {
  const pattern = patternOf(head),
    norms = normsOf(head),
    weights = new Float32Array(i + 1);
  if (pattern)
    for (let j = 0, at = (i * (i + 1)) / 2; j <= i; ++j)
      weights[j] = (pattern[at + j] / 65535) * (norms ? (norms[j] ?? 0) : 1);
  return weights;
}

/// The score {value, chance, ...} of a head in the chosen set, or null.
function scoreOf(head, key) {
  const score = head[chosen.set]?.[key];
  return score && Number.isFinite(score.value) ? score : null;
}
function scoreKeys() {
  return Object.keys(kScores).filter((key) => study.heads.some((head) => scoreOf(head, key)));
}
/// A role for people: what the command called it, or the score's name.
function roleName(role) {
  return kScores[role]?.[0] ?? role;
}

/// What a head is sorted by; larger comes first.
function sortValue(head) {
  const [kind, key] = chosen.sort.split(':');
  if (kind === 'score') return scoreOf(head, key)?.value;
  if (kind === 'ablation') return head.ablation?.[key];
  return head[kind];
}
/// The heads that the filter lets through, in the chosen order.
function headsNow() {
  const heads = study.heads.filter(
    (head) =>
      chosen.role === '' ||
      (chosen.role === 'any' ? head.role : chosen.role === 'none' ? !head.role : head.role === chosen.role),
  );
  const order = Object.keys(kScores);
  const place = (head) => (head.role ? order.indexOf(head.role) : order.length);
  if (chosen.sort === 'role') return heads.sort((a, b) => place(a) - place(b));
  if (chosen.sort !== '')
    return heads.sort((a, b) => (sortValue(b) ?? -Infinity) - (sortValue(a) ?? -Infinity) || 0);
  return heads;
}

/// Numbers as text, whatever the browser's language.
function number(value, digits = 2) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
  if (value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits) return value.toExponential(0);
  return value.toFixed(digits);
}
/// A p-value, if there is one; how small a tiny one is says nothing any more.
function pText(p) {
  return Number.isFinite(p) && p < 1e-6 ? '< 1e-6' : number(p, 3);
}
function signed(value, digits = 2) {
  const text = number(value, digits);
  return value > 0 ? '+' + text : text;
}
