// The groups of a run: what a trainer holds against each other.

import {get, path} from './api.js';
import {strip} from './charts.js';
import {filterBar, pager, sorting} from './lists.js';
import {count, el, number, plain, table, times} from './parts.js';

const GROUPS = 50; // each with a picture

export async function groups(page, run) {
  const {query} = page;
  const x = await get(path('runs', run, 'groups'), {where: query.where, sort: query.sort, offset: query.offset, limit: GROUPS}, page.signal);
  const rewards = x.groups.flatMap((g) => g.episodes.map((e) => e.best_reward)).filter((v) => v !== null);
  const [low, high] = [Math.min(0, ...rewards), Math.max(0, ...rewards)];
  const to = (id) => page.address(['runs', run, 'episodes', id]);
  const columns = [['group', 'Group', plain, false, 'group'], ['task', 'Task', plain, false, 'task'],
    ['episodes', 'Best reward of each member', (all, g) => strip(g.group, all, low, high, to)],
    ['reward', 'Mean', (v) => number(v), true, 'reward'], ['deviation', 'Deviation', (v) => number(v), true, 'deviation'],
    ['best_speedup_lower', 'Best speedup, lower bound', times, true, 'best_speedup_lower'],
    ['accepted', 'Accepted', (v, g) => `${count(v)} of ${count(g.members)}`, true, 'accepted'], ['turns', 'Turns', count, true, 'turns'],
    ['ended', 'Best and worst', (_, g) => againstEachOther(page, run, g)]];
  return [filterBar(page, 'deviation>0.1', 'group, task, members, ended, accepted, rejected, infrastructure, turns, reward, deviation, low, high, best_speedup_lower'),
    x.groups.length ? table('Groups', columns, x.groups, sorting(page), (g) => g.group) : el('p', {}, 'No group matches.'), pager(page, x, GROUPS)];
}

function againstEachOther(page, run, group) {
  const rewarded = group.episodes.filter((e) => e.best_reward !== null).sort((a, b) => b.best_reward - a.best_reward);
  if (rewarded.length < 2) return '–';
  const [a, b] = [rewarded[rewarded.length - 1].id, rewarded[0].id];
  return el('a', {href: page.address(['compare'], {a: `${run}/${a}`, b: `${run}/${b}`}), 'aria-label': `Compare ${a} with ${b}`}, `${plain(a)} – ${plain(b)}`);
}
