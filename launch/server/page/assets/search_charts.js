// Pictures of a search: the best so far, and the tree of its candidates.

import {figure, natural, picture, s, span} from './charts.js';
import {number, plain, times} from './parts.js';

/** "2.35× [2.09, 2.69]" */
export const measured = (x) => (x ? `${times(x.estimate)} [${number(x.low)}, ${number(x.high)}]` : '–');

/**
 * The lower bound of the best so far as steps, with the 95 % interval as a band, against `used(row)`. Pointing at a step shows
 * what was the best there. `end`: how much the search has used.
 */
export function bestSoFar(title, unit, best, used, show, end) {
  const [W, H, L, B] = [420, 220, 46, 26];
  const rows = best.filter((x) => x.speedup);
  if (!rows.length) return figure(title, picture(W, 40, `${title}: nothing is timed yet`, s('text', {x: 8, y: 24}, 'nothing is timed yet')));
  const last = Math.max(end, used(rows[rows.length - 1]), 1e-9);
  const [low, high] = span([1, ...rows.flatMap((x) => [x.speedup.low, x.speedup.high])]);
  const x = (v) => L + (W - L - 10) * v / last;
  const y = (v) => 10 + (H - B - 10) * (1 - (v - low) / (high - low));
  const until = (i) => x(i + 1 < rows.length ? used(rows[i + 1]) : last);
  const path = (key) => rows.flatMap((row, i) => [[x(used(row)), y(row.speedup[key])], [until(i), y(row.speedup[key])]]);
  const points = (all) => all.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(' ');
  const words = (row) => `${show(used(row))} ${unit}: ${measured(row.speedup)}, ${row.turn}`;
  return figure(title, picture(W, H, `${title}, interval of 95 %: ${rows.map(words).join('; ')}`,
    [low, (low + high) / 2, high].map((v) => [s('line', {class: 'axis', x1: L, x2: W - 10, y1: y(v), y2: y(v)}),
      s('text', {x: L - 4, y: y(v) + 4, 'text-anchor': 'end'}, number(v))]),
    s('polygon', {class: 'band', points: points([...path('high'), ...path('low').reverse()])}),
    s('line', {class: 'mark', x1: L, x2: W - 10, y1: y(1), y2: y(1)}), s('text', {x: W - 10, y: y(1) - 4, 'text-anchor': 'end'}, '1x (baseline)'),
    s('polyline', {class: 'line', points: points(path('low'))}),
    rows.map((row) => s('circle', {class: 'bar', cx: x(used(row)), cy: y(row.speedup.low), r: 3.5})),
    s('text', {x: L, y: H - 8}, '0'), s('text', {x: W - 10, y: H - 8, 'text-anchor': 'end'}, `${show(last)} ${unit}`),
    rows.map((row, i) => s('g', {class: 'hover'}, s('line', {class: 'mark', x1: x(used(row)), x2: x(used(row)), y1: 10, y2: H - B}),
      s('rect', {x: x(used(row)), y: 0, width: Math.max(2, until(i) - x(used(row))), height: H - B, 'fill-opacity': 0}, s('title', {}, words(row)))))));
}

// -- the tree --------------------------------------------------------------------------------------

/** Sign, class and words of each outcome: never told by the colour alone. */
export const OUTCOMES = {verified: ['●', 'yes'], failed: ['✕', 'no'], unchanged: ['◆', 'same'], running: ['◌', 'now'],
  interrupted: ['◌', 'cut'], lost: ['○', 'lost']};
const ORDER = ['verified', 'running', 'interrupted', 'unchanged', 'failed', 'lost'];

const member = (name) => Number(name.slice(name.indexOf('.e') + 2));
const lowOf = (x) => x.speedup?.low ?? 0;

/** The place of each episode: generations from left to right, islands from top to bottom, the fastest of a generation on top. */
function placed(rows, islands) {
  const most = Math.max(4, Math.floor(28 / Math.max(1, islands))), step = 20;
  const bands = Array.from({length: Math.max(1, islands)}, () => 1);
  const cells = new Map(); // by generation, of each island its episodes
  for (const row of rows) {
    if (!cells.has(row.generation)) cells.set(row.generation, bands.map(() => []));
    cells.get(row.generation)[row.island ?? 0].push(row);
  }
  const columns = [...cells].sort(([a], [b]) => a - b);
  for (const [, lanes] of columns) lanes.forEach((lane, i) => { bands[i] = Math.max(bands[i], Math.min(most, lane.length)); });
  const tops = [];
  let y = 34;
  bands.forEach((rows, i) => { tops[i] = y; y += rows * step + 16; });
  const gap = Math.min(84, Math.max(20, Math.floor(1120 / columns.length)));
  const places = new Map(), heads = [];
  let x = islands > 0 ? 74 : 20;
  for (const [generation, lanes] of columns) {
    heads.push([generation, x]);
    lanes.forEach((lane, i) => lane
      .sort((a, b) => ORDER.indexOf(a.outcome) - ORDER.indexOf(b.outcome) || lowOf(b) - lowOf(a) || member(a.episode) - member(b.episode))
      .forEach((row, at) => places.set(row.episode, {row, x: x + Math.floor(at / most) * step, y: tops[i] + (at % most) * step})));
    x += (Math.ceil(Math.max(1, ...lanes.map((lane) => lane.length)) / most) - 1) * step + gap;
  }
  return {places, heads, tops, width: x - gap + 24, height: y};
}

function sign({row, x, y}, top) {
  const {outcome} = row, kind = OUTCOMES[outcome][1];
  if (outcome === 'verified') return s('circle', {class: kind, cx: x, cy: y, r: top > 0 ? (3 + 3.5 * lowOf(row) / top).toFixed(1) : 5});
  if (outcome === 'failed') return s('path', {class: kind, d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`});
  if (outcome === 'unchanged') return s('path', {class: kind, d: `M${x} ${y - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5z`});
  return s('circle', {class: kind, cx: x, cy: y, r: 4.5});
}

/** From an episode to the first one of its line. */
function lineOf(places, episode) {
  const line = new Set();
  for (let at = places.get(episode); at && !line.has(at.row.episode); at = places.get(at.row.parent)) line.add(at.row.episode);
  return line;
}

const words = (row) => `${row.episode}, from ${row.parent ?? 'the task'}: ${row.outcome}${row.outcome === 'failed' && row.category ? ` (${row.category})` : ''}`
  + `${row.speedup ? `, ${measured(row.speedup)}` : ''}${row.island === null ? '' : `, island ${row.island}`}${row.niche ? `, niche ${row.niche}` : ''}`;

/** Marks the line of the episode that a reader points at. */
function mark(svg, episode) {
  for (const x of svg.querySelectorAll('.on')) x.classList.remove('on');
  const nodes = new Map([...svg.querySelectorAll('a')].map((x) => [x.dataset.key, x]));
  const edges = new Map([...svg.querySelectorAll('.edge')].map((x) => [x.dataset.key, x]));
  for (let at = nodes.get(episode); at && !at.classList.contains('on'); at = nodes.get(at.dataset.parent)) {
    at.classList.add('on');
    edges.get(at.dataset.key)?.classList.add('on');
  }
}

/** Left: the parent; right: the first child; up and down: others of the generation. */
function move(event) {
  const now = event.target.closest('a');
  if (!now || !event.key.startsWith('Arrow')) return;
  const all = [...now.parentNode.querySelectorAll('a')];
  const same = all.filter((x) => x.dataset.generation === now.dataset.generation), at = same.indexOf(now);
  const next = {ArrowLeft: () => all.find((x) => x.dataset.key === now.dataset.parent), ArrowRight: () => all.find((x) => x.dataset.parent === now.dataset.key),
    ArrowUp: () => same[at - 1], ArrowDown: () => same[at + 1]}[event.key]?.();
  event.preventDefault();
  if (!next) return;
  for (const x of all) x.setAttribute('tabindex', x === next ? '0' : '-1');
  next.focus();
}

/**
 * Every episode of a search by its parent, a link each. `best` is the fastest so far, whose line is drawn strong. Tab reaches one
 * node, from which arrows go to the others.
 */
export function candidateTree(rows, islands, best, address) {
  const {places, heads, tops, width, height} = placed(rows, islands);
  const strong = lineOf(places, best);
  const top = Math.max(0, ...rows.map(lowOf));
  const every = Math.ceil(heads.length / 30);
  const first = places.has(best) ? best : rows[0]?.episode;
  const order = [...places.values()].sort((a, b) => a.row.generation - b.row.generation || a.y - b.y || a.x - b.x);
  const edges = order.filter((n) => places.has(n.row.parent)).map((n) => {
    const up = places.get(n.row.parent), bend = Math.min(60, (n.x - up.x) / 2);
    return s('path', {class: strong.has(n.row.episode) ? 'edge best' : 'edge', 'data-key': n.row.episode,
      d: `M${up.x} ${up.y}C${up.x + bend} ${up.y} ${n.x - bend} ${n.y} ${n.x} ${n.y}`});
  });
  const nodes = order.map((n) => s('a', {href: address(n.row), 'data-key': n.row.episode, 'data-parent': n.row.parent ?? '', 'data-generation': n.row.generation,
    tabindex: n.row.episode === first ? 0 : -1, 'aria-label': words(n.row)},
  s('title', {}, plain(n.row.idea ? `${words(n.row)}\n${n.row.idea}` : words(n.row))), s('circle', {class: n.row.episode === best ? 'ring' : 'reach', cx: n.x, cy: n.y, r: 9}), sign(n, top)));
  const svg = natural(Math.max(width, 300), height, '',
    heads.filter((_, i) => i % every === 0).map(([generation, x]) => s('text', {x, y: 14, 'text-anchor': 'middle'}, `g${generation}`)),
    islands > 0 && tops.map((y, i) => s('text', {x: 4, y: y + 4}, `island ${i}`)),
    s('g', {class: 'edges'}, edges), s('g', {class: 'nodes'}, nodes));
  svg.setAttribute('role', 'group');
  svg.setAttribute('aria-label', `${rows.length} episodes by parent. Arrow keys: parent, child, and others of the generation; Enter opens one.`);
  svg.classList.add('tree');
  svg.onkeydown = move;
  for (const name of ['mouseover', 'focusin']) svg.addEventListener(name, (event) => mark(svg, event.target.closest('a')?.dataset.key));
  return figure('Candidates by parent; from left to right by generation, the fastest of each on top', svg);
}
