// Which page the address asks for. The address is the whole state: filters, order and place are in
// it, so that a link is a saved view.

import {follow, isStored, setToken, takeToken} from './api.js';
import {add, el, problem} from './parts.js';
import {forget, tell} from './latest.js';
import {comparePage} from './compare.js';
import {episodePage} from './episode.js';
import {kernelsPage} from './kernels.js';
import {livePage} from './live.js';
import {patch} from './patch.js';
import {runPage} from './run.js';
import {runsPage} from './runs.js';
import {systemPage} from './system.js';

const main = document.getElementById('main');
const connection = document.getElementById('connection');
let leaving = new AbortController();

/** "#/runs/first/episodes?where=..." as {parts, query}. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const decoded = (x) => { try { return decodeURIComponent(x); } catch { return x; } };
  return {parts: path.split('/').filter(Boolean).map(decoded),
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
  at.replaceChildren(...why.category === 'not_found' ? notFound(why.message) : [problem(why)]);
  if (why.status === 401) at.append(tokenForm());
}

function notFound(words) {
  return [el('h2', {}, 'Not found'), el('p', {}, words), el('p', {}, el('a', {href: '#/runs'}, 'All runs'))];
}

/** The function that draws what the address names; nothing where it names no page. */
function pageOf(parts) {
  const [first, run, what, episode, more] = parts;
  if (first === undefined) return runsPage;
  const alone = {system: systemPage, live: livePage, compare: comparePage, kernels: kernelsPage}[first];
  if (alone) return run === undefined ? alone : null;
  if (first !== 'runs' || more !== undefined) return null;
  if (run === undefined) return runsPage;
  if (what === 'episodes' && episode) return (page) => episodePage(page, run, episode);
  return episode === undefined ? (page) => runPage(page, run, what ?? 'overview') : null;
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const signal = leaving.signal;
  const {parts, query} = place();
  for (const link of document.querySelectorAll('nav a'))
    if (link.getAttribute('href') === `#/${parts[0] ?? 'runs'}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  const at = el('div');
  main.replaceChildren(at);
  connection.textContent = isStored ? 'stored' : '';
  forget();
  // What a page needs: where it draws, what the address says, and how it hears of changes.
  const page = {
    at, query, signal, address, parts,
    go: (more) => { location.hash = address(parts, {...query, ...more}); },
    replace: (more) => { history.replaceState(null, '', address(parts, {...query, ...more})); },
    fail: (why) => { if (!signal.aborted) failed(why, at); },
    draw: (...children) => { if (!signal.aborted) patch(at, add(el('div'), children)); },
    // What happened between the first drawing and the subscription is told by 'open'.
    follow: (wanted, onEvent) => !isStored && follow(wanted, (name, data) => {
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
  document.title = ['Kernelmill', ...(parts.length > 1 ? parts.slice(1) : parts)].join(' · ');
  try {
    const draw = pageOf(parts);
    if (draw) await draw(page);
    else page.draw(notFound(`There is no page at ${location.hash}.`));
  } catch (why) {
    page.fail(why);
  }
}

// "/" goes to the filter, "[" and "]" to the one before and the next: every control is reachable by Tab, too.
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
  const wanted = {'/': '#where', '[': '#before', ']': '#after'}[event.key];
  const found = wanted && document.querySelector(wanted);
  if (!found) return;
  event.preventDefault();
  if (event.key === '/') found.focus();
  else found.click();
});

window.addEventListener('hashchange', () => { takeToken(); show(); main.focus({preventScroll: true}); });
takeToken();
show();
