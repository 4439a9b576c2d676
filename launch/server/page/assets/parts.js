// Small parts of pages. Every text goes in by textContent: what a model wrote is never markup.

export function el(name, attributes = {}, ...children) {
  const x = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') x.className = value;
    else if (key.startsWith('on')) x[key] = value; // a property: patch() takes it over
    else x.setAttribute(key, value === true ? '' : value);
  }
  add(x, children);
  return x;
}

export function add(to, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    to.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return to;
}

/** A model's words: control characters are shown as symbols, so that nothing acts or hides. */
export function plain(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g,
    (c) => (c === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + c.charCodeAt(0))))
    .replace(/[\u0080-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

export const number = (x, digits = 2) =>
  x === null || x === undefined || Number.isNaN(x) ? '–' : Number(x).toFixed(digits);

/** A speedup: a multiple of the baseline's speed. */
export const times = (x) => (x === null || x === undefined ? '–' : `${number(x)}×`);

// Made once: toLocaleString() looks for one at each call.
const grouped = new Intl.NumberFormat('en');
const dated = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'short'});

export const count = (x) => (x === null || x === undefined ? '–' : grouped.format(x));

export function seconds(x) {
  if (x === null || x === undefined) return '–';
  if (x < 1) return `${Math.round(x * 1000)} ms`;
  if (x < 120) return `${x.toFixed(1)} s`;
  if (x < 7200) return `${Math.round(x / 60)} min`;
  return `${(x / 3600).toFixed(1)} h`;
}

/** Turns are counted from 1 where people read; ids such as g3.e1.t0 have the number from 0. */
export const turnWord = (index, of = 0) => (of ? `turn ${index + 1} of ${of}` : `turn ${index + 1}`);

export const when = (at) => (at ? dated.format(at * 1000) : '–');

const good = new Set(['accepted', 'finished', 'success', 'pass', 'serving', 'running', 'idle', 'live', 'ok', 'verified']);
const bad = new Set(['rejected', 'failed', 'fail', 'stuck', 'unreadable', 'lost', 'critical', 'failure']);

export function state(text) {
  const word = text ?? '';
  return el('span', {class: good.has(word) ? 'good' : bad.has(word) ? 'bad' : 'odd'}, plain(word));
}

export const card = (name, value, more = '') =>
  el('div', {class: 'card'}, el('span', {class: 'dim'}, name), el('b', {}, value),
     more && el('span', {class: 'note'}, more));

/** How far something is, as a bar. */
export const meter = (share, says) => el('progress', {max: 1, value: Math.min(1, Math.max(0, share)).toFixed(4), 'aria-label': says});

export const chips = (words) => (words ?? []).map((word) => el('span', {class: 'chip'}, plain(word)));

/**
 * A table: columns are [key, title, show, isNumber, sortKey]. With `sorting` (a key, "-key", and a
 * function that takes a new one) heads are buttons. `keyOf` names a row, so that a row which moves stays the same element.
 */
export function table(caption, columns, rows, sorting = null, keyOf = null) {
  const head = columns.map(([, title, , isNumber, sortKey]) => {
    if (!sorting || !sortKey) return el('th', {scope: 'col', class: isNumber && 'number'}, title);
    const [is, wanted] = [sorting.now.replace(/^-/, ''), sorting.now.startsWith('-')];
    const order = is !== sortKey ? 'none' : wanted ? 'descending' : 'ascending';
    return el('th', {scope: 'col', class: isNumber && 'number', 'aria-sort': order},
      el('button', {type: 'button', onclick: () => sorting.set(order === 'ascending' ? `-${sortKey}` : sortKey)},
         title, order === 'ascending' ? ' ▲' : order === 'descending' ? ' ▼' : ''));
  });
  const body = rows.map((row) => el('tr', {'data-key': keyOf?.(row)}, columns.map(([key, , show, isNumber]) =>
    el('td', {class: isNumber ? 'number' : /\S{41}/.test(String(row[key])) ? 'words long' : 'words'}, show ? show(row[key], row) : plain(row[key] ?? '–')))));
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    el('table', {}, el('caption', {}, caption), el('thead', {}, el('tr', {}, head)), el('tbody', {}, body)));
}

export function problem(why) {
  return el('div', {class: 'problem', role: 'alert'}, el('p', {}, plain(why.message ?? why)),
    why.hint && el('p', {class: 'note'}, plain(why.hint)));
}

/** A text that may be long, closed until it is wanted unless `open`. */
export function text(title, content, open = false, whole = null) {
  if (!content || content.bytes === 0) return null;
  return el('details', {open}, el('summary', {}, title, el('span', {class: 'note'}, ` ${count(content.bytes)} bytes`)),
    el('pre', {tabindex: '0', 'aria-label': title}, plain(content.text)),
    content.cut && el('p', {class: 'note'}, 'Only the beginning is shown. ',
      whole && el('button', {type: 'button', onclick: whole}, 'Save the whole text')));
}

/**
 * Calls `work` at most once in `ms` and never twice side by side; what is asked for meanwhile is done
 * once more afterwards, so the last event is never lost. The promise ends when a call that began
 * after the asking has.
 */
export function calmly(work, ms) {
  let at = -Infinity, next = null, running = Promise.resolve();
  return () => {
    next ??= running.then(async () => {
      const early = at + ms - Date.now();
      if (early > 0) await new Promise((done) => setTimeout(done, early));
      next = null;
      at = Date.now();
      running = work();
      await running;
    });
    return next;
  };
}

/** A button that asks before it does something, and says why it could not. */
export function pressing(title, question, work) {
  return el('span', {}, el('button', {type: 'button', onclick: (event) => {
    const said = event.currentTarget.nextElementSibling;
    if (!confirm(question)) return;
    Promise.resolve().then(work).catch((why) => said.replaceChildren(problem(why)));
  }}, title), ' ', el('span', {class: 'note', role: 'status'}));
}
