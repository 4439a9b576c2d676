// Which page the address asks for. The address is the whole state: filters, order and place are in
// it, so that a link is a saved view.

import {follow, setToken, takeToken} from './api.js';
import {add, el, problem} from './parts.js';
import {forget, tell} from './latest.js';
import {comparePage} from './compare.js';
import {episodePage} from './episode.js';
import {livePage, runPage, runsPage} from './run.js';
import {systemPage} from './system.js';

const main = document.getElementById('main');
const connection = document.getElementById('connection');
let leaving = new AbortController();

/** "#/runs/first/episodes?where=..." as {parts, query}. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  return {parts: path.split('/').filter(Boolean).map(decodeURIComponent),
          query: Object.fromEntries(new URLSearchParams(query ?? ''))};
}

export function address(parts, query = {}) {
  const tail = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== '' && v !== undefined && v !== null));
  return '#/' + parts.map(encodeURIComponent).join('/') + (String(tail) ? `?${tail}` : '');
}

function tokenForm() {
  const field = el('input', {type: 'password', autocomplete: 'off', required: true, id: 'token'});
  return el('form', {class: 'bar', onsubmit: (event) => { event.preventDefault(); setToken(field.value); show(); }},
    el('label', {}, 'Token of this server', field), el('button', {}, 'Go on'));
}

function failed(why, at) {
  if (why.name === 'AbortError') return;
  at.replaceChildren(problem(why));
  if (why.status === 401) at.append(tokenForm());
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const signal = leaving.signal;
  const {parts, query} = place();
  const [first, run, what, episode] = parts;
  for (const link of document.querySelectorAll('nav a'))
    link.toggleAttribute('aria-current', link.getAttribute('href') === `#/${first ?? 'runs'}`);
  const at = el('div');
  main.replaceChildren(at);
  connection.textContent = '';
  forget();
  // What a page needs: where it draws, what the address says, and how it hears of changes.
  const page = {
    at, query, signal, address, parts,
    go: (more) => { location.hash = address(parts, {...query, ...more}); },
    replace: (more) => { history.replaceState(null, '', address(parts, {...query, ...more})); },
    fail: (why) => failed(why, at),
    draw: (...children) => { if (!signal.aborted) { const fresh = el('div'); add(fresh, children); keepFocus(at, fresh); } },
    // What happened between the first drawing and the subscription is told by 'open'.
    follow: (wanted, onEvent) => follow(wanted, (name, data) => {
      if (signal.aborted) return;
      if (name === 'turn') tell(data, address);
      onEvent(name, data);
    },
      (words) => {
        if (signal.aborted) return;
        connection.textContent = words;
        if (words === 'live') onEvent('open', {});
      }, signal),
  };
  try {
    if (first === 'system') await systemPage(page);
    else if (first === 'live') await livePage(page);
    else if (first === 'compare') await comparePage(page);
    else if (first === 'runs' && what === 'episodes' && episode) await episodePage(page, run, episode);
    else if (first === 'runs' && run) await runPage(page, run, what ?? 'overview');
    else await runsPage(page);
    document.title = ['Kernelmill', ...(parts.length > 1 ? parts.slice(1) : parts)].join(' · ');
  } catch (why) {
    if (!signal.aborted) failed(why, at);
  }
}

/** Draws anew without taking a reader's focus, open details and scroll away. */
function keepFocus(at, fresh) {
  const active = document.activeElement;
  const focused = active?.id;
  // A control without an id is known by what it says, and by its place among those that say the same.
  const words = (x) => [x.getAttribute('href'), x.getAttribute('aria-label'), x.hasAttribute('href') ? '' : x.textContent].join('\n');
  const said = !focused && at.contains(active) ? words(active) : null;
  const alike = (within) => [...within.querySelectorAll(active.tagName)].filter((x) => words(x) === said);
  const nth = said === null ? -1 : alike(at).indexOf(active);
  const open = new Set([...at.querySelectorAll('details[open][id]')].map((x) => x.id));
  const closed = new Set([...at.querySelectorAll('details[id]:not([open])')].map((x) => x.id));
  const typed = [...at.querySelectorAll('input[id], textarea[id]')].map((x) => [x.id, x.value]);
  const scrolled = [...at.querySelectorAll('.scroll')].map((x) => x.scrollLeft);
  at.replaceChildren(...fresh.childNodes);
  for (const x of at.querySelectorAll('details[id]')) {
    if (open.has(x.id)) x.open = true;
    if (closed.has(x.id)) x.open = false;
  }
  for (const [id, value] of typed) {
    const x = document.getElementById(id);
    if (x && id === focused) x.value = value;
  }
  at.querySelectorAll('.scroll').forEach((x, i) => { x.scrollLeft = scrolled[i] ?? 0; });
  const again = focused ? document.getElementById(focused) : nth < 0 ? null : alike(at)[nth];
  again?.focus({preventScroll: true});
}

// "/" goes to the filter, "?" has no dialog: every control is reachable by Tab.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
  const filter = document.getElementById('where');
  if (!filter) return;
  event.preventDefault();
  filter.focus();
});

window.addEventListener('hashchange', () => { takeToken(); show(); main.focus({preventScroll: true}); });
takeToken();
show();
