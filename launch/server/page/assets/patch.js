// Draws anew in place: what is the same stays the same element, so that a reader's selection, focus,
// scroll and open details survive a page that changes many times a second. An element that stays takes over the
// handlers of the fresh one, whose elements are thrown away: a handler finds elements by its event or by an id.

const HANDLERS = ['onclick', 'onsubmit', 'onchange', 'oninput', 'ontoggle', 'onkeydown'];

const keyOf = (x) => x.id || x.dataset?.key || '';

/** An element whose contents are made when it enters the page, and again only under another `key`. */
export function lazy(x, key, make) {
  x.dataset.same = key;
  x.make = make;
  return x;
}

function fill(x) {
  if (x.nodeType !== Node.ELEMENT_NODE) return x;
  for (const y of [x, ...x.querySelectorAll('[data-same]')]) if (y.make) { y.append(y.make()); y.make = null; }
  return x;
}

/** Makes the children of `at` those of `fresh`, which is used up. */
export function patch(at, fresh) {
  const keyed = new Map();
  for (const x of at.childNodes) if (keyOf(x)) keyed.set(keyOf(x), x);
  let next = at.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    let old = key ? keyed.get(key) : next;
    if (old && (old.nodeName !== wanted.nodeName || keyOf(old) !== key)) old = null;
    if (!old) { at.insertBefore(fill(wanted), next); continue; }
    if (old === next) next = next.nextSibling;
    else at.insertBefore(old, next);
    renew(old, wanted);
  }
  while (next) { const gone = next; next = next.nextSibling; gone.remove(); }
}

function renew(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const handler of HANDLERS) if (old[handler] !== wanted[handler]) old[handler] = wanted[handler];
  const same = old.dataset.same !== undefined && old.dataset.same === wanted.dataset.same;
  for (const {name} of [...old.attributes])
    if (!wanted.hasAttribute(name) && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name);
  for (const {name, value} of wanted.attributes)
    if (old.getAttribute(name) !== value && !(name === 'open' && old.nodeName === 'DETAILS')) old.setAttribute(name, value);
  if (same) return;
  if (wanted.make) { old.replaceChildren(); fill(wanted); }
  patch(old, wanted);
}
