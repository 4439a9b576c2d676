// The best verified kernel of each task and GPU over all runs, with its code.

import {get, isStored, path, wholeText} from './api.js';
import {code} from './code.js';
import {filterBar, PAGE, pager, sorting} from './lists.js';
import {calmly, count, el, number, plain, problem, table, times, when} from './parts.js';

export async function kernelsPage(page) {
  const {query} = page;
  const shown = new Map(); // code by turn
  const draw = async () => {
    const x = await get(path('kernels'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
    const name = (r) => `${r.name}/${r.turn}`;
    const show = (r) => async () => {
      if (shown.has(name(r))) shown.delete(name(r));
      else shown.set(name(r), r.code ?? await wholeText(path('runs', r.name, 'turns', r.turn, 'candidate'), page.signal).catch((why) => why));
      await draw();
    };
    const link = (v, r) => el('a', {href: page.address(['runs', r.name, 'episodes', r.turn.slice(0, r.turn.lastIndexOf('.'))], {turn: r.turn.split('.t')[1]})}, plain(`${r.run}/${v}`));
    const columns = [['task', 'Task', plain, false, 'task'], ['device', 'Device', plain, false, 'device'],
      ['shape', 'Shape', plain, false, 'shape'], ['baseline', 'Baseline', plain, false, 'baseline'],
      ['best_speedup_lower', 'Speedup, lower bound', times, true, 'best_speedup_lower'],
      ['estimate', 'Estimate [95 % interval]', (v, r) => `${number(v)} [${number(r.best_speedup_lower)}, ${number(r.high)}]`, true], ['samples', 'Timed calls', count, true, 'samples'],
      ['candidate_ms', 'Time', (v) => `${number(v, 4)} ms`, true], ['kernels', 'Accepted', count, true, 'kernels'],
      ['turn', 'Turn', link], ['model', 'Model', plain, false, 'model'], ['committed_at', 'When', when, false, 'committed_at'],
      ['code', 'Code', (_, r) => (isStored && !r.code ? '' : el('button', {type: 'button', 'aria-expanded': String(shown.has(name(r))), onclick: () => show(r)().catch(page.fail)}, shown.has(name(r)) ? 'Hide' : 'Show'))]];
    const open = x.kernels.filter((r) => shown.has(name(r)));
    page.draw(el('h2', {}, 'Best verified kernels'),
      filterBar(page, 'task~softmax and best_speedup_lower>1', 'task, device, run, model, best_speedup_lower, estimate, kernels'),
      x.kernels.length ? table('The best kernel of each task, device, shape and baseline, over all runs', columns, x.kernels, sorting(page), (r) => `${r.task} ${r.device} ${r.shape} ${r.baseline}`) : el('p', {}, 'No kernel was accepted and timed yet.'), pager(page, x),
      open.map((r) => el('section', {id: `code-${name(r)}`}, el('h3', {}, plain(`${r.task}, ${name(r)}`)),
        shown.get(name(r)) instanceof Error ? problem(shown.get(name(r))) : code('Code', shown.get(name(r))))));
  };
  await draw();
  page.follow({topics: 'turns,runs'}, calmly(() => draw().catch(page.fail), 3000));
}
