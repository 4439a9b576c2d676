// The live episodes of all runs, and their queues.

import {get, path} from './api.js';
import {filterBar, PAGE, pager, sorting} from './lists.js';
import {calmly, count, el, number, plain, seconds, state, table, times} from './parts.js';

/** Columns of a list of episodes; `name` gives the folder of a row's run. */
export const episodeColumns = (page, name) => [
  ['id', 'Episode', (id, r) => el('a', {href: page.address(['runs', name(r), 'episodes', id])}, plain(name(r) === r.name ? `${r.run}/${id}` : id)), false, 'id'],
  ['state', 'State', state, false, 'state'], ['task', 'Task', plain, false, 'task'],
  ['turn', 'Turn', (_, r) => (r.max_turns ? `${(r.turn ?? 0) + 1} of ${r.max_turns}` : count(r.turns)), true, 'turn'],
  ['age_seconds', 'For', seconds, true, 'age_seconds'],
  ['best_reward', 'Best reward', (v) => number(v), true, 'best_reward'],
  ['best_speedup_lower', 'Best speedup, lower bound', times, true, 'best_speedup_lower'],
  ['detail', 'What happens', (v, r) => plain(r.position ? `${r.position}. in the queue ${r.queue}` : r.stop_reason ?? v ?? '')]];

export async function livePage(page) {
  const {query} = page;
  const draw = async () => {
    const x = await get(path('episodes'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
    const names = new Map(x.runs.map((r) => [r.run, r.directory.slice(r.directory.lastIndexOf('/') + 1)]));
    const name = (r) => names.get(r.run) ?? r.run;
    const columns = episodeColumns(page, name);
    columns.unshift(['run', 'Run', plain, false, 'run']);
    page.draw(el('h2', {}, 'Live episodes'),
      filterBar(page, 'state=queued and age>60', 'run, id, task, state, age, turn, queue, position, worker, reward, speedup, error'),
      x.episodes.length ? table(`${count(x.live)} live episodes`, columns, x.episodes, sorting(page), (r) => `${r.run}/${r.id}`)
        : el('p', {}, x.live ? 'None matches.' : 'No run is in progress.'), pager(page, x),
      x.runs.map((r) => table(`Queues of ${r.run}: ${r.state}, ${count(r.ended)} of ${count(r.episodes)} episodes ended`,
        [['queue', 'Queue', plain], ['state', 'State', state], ['waiting', 'Wait', count, true], ['leased', 'At work', count, true],
          ['places', 'Places', count, true], ['done', 'Done', count, true], ['mean_seconds', 'Mean', seconds, true],
          ['oldest_wait_seconds', 'Longest wait', seconds, true]], r.queues, null, (q) => q.queue)));
  };
  await draw();
  page.follow({topics: 'turns,runs,live'}, calmly(() => draw().catch(page.fail), 700));
}
