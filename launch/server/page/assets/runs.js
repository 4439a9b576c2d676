// The list of runs. Ticked runs are compared, or laid over each other.

import {get, isStored, path} from './api.js';
import {filterBar, PAGE, pager, sorting} from './lists.js';
import {calmly, chips, count, el, number, plain, seconds, state, table, times, when} from './parts.js';

const progress = (r) => (r.episodes ? `${count(r.ended)} of ${count(r.episodes)}` : count(r.ended));

export async function runsPage(page) {
  const {query} = page;
  const ticked = new Set();
  const chosen = () => [...ticked];
  const draw = async () => {
    const x = await get(path('runs'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
    const tick = (_, r) => el('input', {type: 'checkbox', 'aria-label': `Choose ${r.name}`,
      onchange: (event) => { if (event.target.checked) ticked.add(r.name); else ticked.delete(r.name); draw().catch(page.fail); }});
    const columns = [
      ['name', 'Choose', tick],
      ['run', 'Run', (_, r) => [el('a', {href: page.address(['runs', r.name])}, plain(r.run)), chips(r.tags)], false, 'run'],
      ['state', 'State', state, false, 'state'],
      ['progress', 'Episodes', (_, r) => [progress(r), r.left_seconds ? el('span', {class: 'note'}, `, about ${seconds(r.left_seconds)} left`) : ''], true, 'progress'],
      ['turns', 'Turns', count, true, 'turns'], ['accepted', 'Accepted', count, true, 'accepted'],
      ['reward', 'Mean best reward', (v) => number(v), true, 'reward'],
      ['best_speedup_lower', 'Best speedup, lower bound', times, true, 'best_speedup_lower'],
      ['geomean_speedup', 'Geomean speedup', times, true, 'geomean_speedup'],
      ['seconds', 'Time', seconds, true, 'seconds'], ['began_at', 'Began', when, false, 'began_at'],
      ['failure', 'Why it ended', (v, r) => plain(v || r.failure_category || '')]];
    const two = ticked.size === 2, some = ticked.size > 1;
    page.draw(el('h2', {}, 'Runs'),
      filterBar(page, 'state=finished and turns>10', 'run, tags, state, progress, turns, accepted, reward, best_speedup_lower, geomean_speedup, evidence, seconds'),
      el('p', {class: 'chosen'},
        !isStored && el('button', {type: 'button', disabled: !two, onclick: () => { location.hash = page.address(['compare'], {a: chosen()[0], b: chosen()[1]}); }}, 'Compare two'), ' ',
        el('button', {type: 'button', disabled: !some, onclick: () => { location.hash = page.address(['runs', chosen()[0]], {with: chosen().slice(1).join(',')}); }}, 'Overlay charts'), ' ',
        el('span', {class: 'note'}, ticked.size ? `${ticked.size} chosen` : 'Tick runs to compare them.')),
      x.runs.length ? table(`Runs below ${x.root}`, columns, x.runs, sorting(page), (r) => r.name) : el('p', {}, 'No run matches.'), pager(page, x));
  };
  await draw();
  page.follow({topics: 'turns,runs'}, calmly(() => draw().catch(page.fail), 2000));
}
