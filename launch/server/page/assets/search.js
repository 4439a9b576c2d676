// A search: the best so far, the tree of its candidates, what the strategy improves next, and all of it as tables.

import {get, path} from './api.js';
import {pager, PAGE} from './lists.js';
import {card, count, el, meter, number, plain, seconds, state, table, times} from './parts.js';
import {bestSoFar, candidateTree, measured, OUTCOMES} from './search_charts.js';

const episodeOf = (turn) => turn.slice(0, turn.lastIndexOf('.'));
const tokensOf = (x) => x.prompt_tokens + x.completion_tokens;

export async function search(page, run, buttons, again) {
  const x = await get(path('runs', run, 'search'), {}, page.signal);
  const to = (episode) => page.address(['runs', run, 'episodes', episode]);
  const link = (episode) => (episode ? el('a', {href: to(episode)}, plain(episode)) : 'the task');
  const best = x.best_so_far[x.best_so_far.length - 1];
  return [cards(x, best, link),
    el('div', {class: 'charts three'},
      bestSoFar('Best so far by turns', 'turns', x.best_so_far, (r) => r.turns, count, x.used.turns),
      bestSoFar('Best so far by tokens', 'tokens', x.best_so_far, tokensOf, count, tokensOf(x.used)),
      bestSoFar('Best so far by time in slots', 'of slots', x.best_so_far, (r) => r.slot_seconds, seconds, x.used.slot_seconds)),
    x.tree.length > 0 && [candidateTree(x.tree, x.islands, best && episodeOf(best.turn), (r) => to(r.episode)), legend(x)],
    x.left_out > 0 && el('p', {class: 'note'}, `The first ${count(x.left_out)} episodes are left out.`),
    el('div', {class: 'charts'}, frontier(x, link), elites(x, link)),
    candidates(page, x, link, again), improvements(x, link)];
}

function cards(x, best, link) {
  const share = (used, of, show) => (of ? [`${show(used)} of ${show(of)}`, meter(used / of, `${show(used)} of ${show(of)}`)] : show(used));
  const n = x.episodes;
  return el('div', {class: 'cards'}, card('State', state(x.state), x.state === 'interrupted' ? 'kernelmill resume continues it' : `${x.strategy}, ${plain(x.task)}`),
    card('Generations', share(x.generations, x.planned_generations, count), `${count(x.width)} episodes each`),
    card('Episodes', count(n.all), `${count(n.verified)} verified, ${count(n.failed)} failed, ${count(n.unchanged)} unchanged`
      + `${n.lost ? `, ${count(n.lost)} lost` : ''}${n.running ? `, ${count(n.running)} in progress` : ''}`),
    card('Best so far, lower bound', times(best?.speedup?.low), best && [link(episodeOf(best.turn)), ` ${measured(best.speedup)}`]),
    card('Measured again', times(x.winner?.speedup?.estimate), x.winner ? [link(episodeOf(x.winner.turn)), ` ${measured(x.winner.speedup)}`] : 'when the search has ended'),
    card('Turns', share(x.used.turns, x.budget.turns, count)), card('Tokens', share(tokensOf(x.used), x.budget.tokens, count)),
    card('Time in slots', share(x.used.slot_seconds, x.budget.slot_seconds, seconds)),
    x.budget.dollars && card('Dollars', share(x.used.dollars, x.budget.dollars, (v) => number(v))));
}

const legend = (x) => [el('p', {class: 'note legend'}, Object.entries(OUTCOMES).filter(([name]) => x.episodes[name] > 0)
  .map(([name, [sign, kind]]) => [el('span', {class: `key ${kind}`}, sign), ` ${name} (${count(x.episodes[name])})  `])),
el('p', {class: 'note'}, 'The ring is the best so far, the strong line how it came about. The larger a dot, the faster. Without a line: made from the task alone. Point at an episode to see its line.')];

// -- tables ----------------------------------------------------------------------------------------

function frontier(x, link) {
  const title = x.state === 'running' ? `Generation g${x.frontier.generation} improves`
    : x.state === 'interrupted' ? `Generation g${x.frontier.generation}, once it is resumed, improves` : 'A further generation would improve';
  return table(title, [['parent', 'Candidate', link], ['speedup', 'Speedup [95 % interval]', measured, true], ['niche', 'Niche', (v) => plain(v ?? '–')],
    ['episodes', 'Episodes', count, true]], x.frontier.starts, null, (r) => `next ${r.parent}`);
}

/** A row a niche, a column an island. */
function elites(x, link) {
  if (!x.islands) return null;
  const niches = [...new Set(x.elites.map((e) => e.niche))].sort();
  const found = (niche, island) => x.elites.find((e) => e.niche === niche && e.island === island);
  const show = (island) => (_, r) => { const e = found(r.niche, island); return e ? [link(e.episode), ` ${measured(e.speedup)}`] : '–'; };
  return table('The elite of each niche on each island', [['niche', 'Niche', plain],
    ...Array.from({length: x.islands}, (_, i) => [`island${i}`, `Island ${i}`, show(i)])], niches.map((niche) => ({niche})), null, (r) => r.niche);
}

const NUMBERS = new Set(['generation', 'island', 'low', 'estimate']);
const valueOf = {low: (r) => r.speedup?.low, estimate: (r) => r.speedup?.estimate};

function ordered(rows, sort) {
  const key = sort.replace(/^-/, ''), sign = sort.startsWith('-') ? -1 : 1;
  const of = valueOf[key] ?? ((r) => r[key]);
  const missing = (v) => v === null || v === undefined;
  return [...rows].sort((a, b) => {
    const [v, w] = [of(a), of(b)];
    if (missing(v) || missing(w)) return missing(v) - missing(w);
    return sign * (NUMBERS.has(key) ? v - w : String(v).localeCompare(String(w), 'en', {numeric: true}));
  });
}

/** All episodes. Order and place are in the address; the page stays where it is scrolled to. */
function candidates(page, x, link, again) {
  const go = (more) => { Object.assign(page.query, more); page.replace(more); again().catch(page.fail); };
  const sort = page.query.sort || '-low', offset = Number(page.query.offset || 0);
  const columns = [['episode', 'Episode', link, false, 'episode'], ['generation', 'Generation', (v) => `g${v}`, true, 'generation'],
    ['parent', 'From', link, false, 'parent'], x.islands > 0 && ['island', 'Island', count, true, 'island'], ['niche', 'Niche', (v) => plain(v ?? '–'), false, 'niche'],
    ['outcome', 'Outcome', (v, r) => [state(v), v === 'failed' && r.category ? el('span', {class: 'note'}, ` ${plain(r.category)}`) : ''], false, 'outcome'],
    ['low', 'Lower bound', (_, r) => times(r.speedup?.low), true, 'low'], ['estimate', 'Speedup [95 % interval]', (_, r) => measured(r.speedup), true, 'estimate'],
    ['idea', 'Idea', (v) => el('span', {class: 'idea'}, plain(v))]];
  return [table('Candidates', columns.filter(Boolean), ordered(x.tree, sort).slice(offset, offset + PAGE), {now: sort, set: (key) => go({sort: key, offset: ''})}, (r) => r.episode),
    pager({go}, {offset, matching: x.tree.length})];
}

function improvements(x, link) {
  if (!x.best_so_far.length) return null;
  return table('Best so far', [['turns', 'Turns', count, true], ['tokens', 'Tokens', (_, r) => count(tokensOf(r)), true], ['slot_seconds', 'Time in slots', seconds, true],
    ['speedup', 'Speedup [95 % interval]', measured, true], ['turn', 'Episode', (v) => link(episodeOf(v))], ['parent', 'From', link]], x.best_so_far, null, (r) => `best ${r.turn}`);
}
