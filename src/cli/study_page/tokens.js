// Tokens, shown literally: white space has signs, and what has no shape of its own is named by its
// code point. Text enters the page through text nodes alone.

const kSigns = new Map([
  [' ', '\u2420'],
  ['\n', '\u23CE'],
  ['\t', '\u21E5'],
]);
// Control and format characters (among them those that change the direction), surrogates, unassigned
// and private ones, spaces, variation selectors, and letters without ink.
const kUnseen = /[\p{C}\p{Z}\p{Variation_Selector}\u034F\u115F\u1160\u17B4\u17B5\u3164\uFFA0]/u;

function codePoint(character) {
  return 'U+' + character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
}

/// The parts of a token: plain text, and signs that stand for a character.
function partsOf(token) {
  if (token === '') return [{sign: true, text: '\u2205'}];
  const parts = [];
  for (const character of token) {
    const sign = kSigns.get(character) ?? (kUnseen.test(character) ? codePoint(character) : null);
    const last = parts[parts.length - 1];
    if (sign !== null) parts.push({sign: true, text: sign});
    else if (last && !last.sign) last.text += character;
    else if (/^\p{M}/u.test(character)) parts.push({sign: false, text: '\u25CC' + character});
    else parts.push({sign: false, text: character});
  }
  return parts;
}

/// A token as text, for canvases and titles.
function shown(token) {
  return partsOf(token)
    .map((part) => part.text)
    .join('');
}

/// A title or a name as text: the same, but spaces are spaces.
function plain(text) {
  return shown(text).replaceAll(kSigns.get(' '), ' ');
}

/// A token as text, no longer than some characters.
function shortened(token, most) {
  const characters = [...shown(token)];
  return characters.length <= most ? characters.join('') : characters.slice(0, most - 1).join('') + '\u2026';
}

/// An element; attributes that are functions listen, children that are texts become text nodes.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/// The same for drawings.
function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/// A token as an element: its signs look different from letters that spell the same.
function tokenElement(token, tag = 'span', attributes = {}) {
  return make(
    tag,
    {...attributes, class: 'token ' + (attributes.class ?? '')},
    partsOf(token).map((part) => (part.sign ? make('span', {class: 'sign'}, part.text) : part.text)),
  );
}
