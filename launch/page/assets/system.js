// Machines, slots, policy servers, and the actors behind them.

import {get, path} from './api.js';
import {calmly, count, el, number, plain, seconds, state, table} from './parts.js';

const numbers = (x) => plain(Object.entries(x ?? {}).map(([k, v]) => `${k} ${Number.isInteger(v) ? count(v) : number(v)}`).join(', '));

export async function systemPage(page) {
  const draw = async () => {
    const [nodes, gpus, policies, actors] = await Promise.all(
      ['nodes', 'gpus', 'policies', 'actors'].map((what) => get(path(what), {}, page.signal)));
    page.draw(el('h2', {}, 'Nodes, GPUs, policy servers'),
      !nodes.nodes.length && el('p', {}, 'No run is in progress, so no machine works.'),
      nodes.nodes.length > 0 && table('Machines', [['node', 'Node', plain], ['state', 'State', state], ['hardware', 'Hardware', plain], ['slots', 'Slots', count, true],
        ['busy', 'Busy', count, true], ['compilers', 'Compilers', count, true], ['cores', 'Cores', count, true], ['load', 'Load', (v) => number(v), true]], nodes.nodes),
      el('h3', {}, 'Slots'),
      gpus.gpus.length > 0 && table('Slots and GPUs', [['node', 'Node', plain], ['slot', 'Slot', plain], ['state', 'State', state], ['detail', 'What it does', plain],
        ['age_seconds', 'For', seconds, true], ['done', 'Done', count, true], ['infrastructure_faults', 'Faults', count, true], ['celsius', '°C', count, true],
        ['watts', 'W', count, true], ['clock_mhz', 'MHz', count, true]], gpus.gpus),
      el('h3', {}, 'Policy servers'),
      policies.policies.length > 0 && table('Policy servers and requests that are tried again', [['run', 'Run', plain], ['actor', 'What', plain], ['id', 'Name', plain], ['state', 'State', state],
        ['detail', 'Says', plain], ['numbers', 'Numbers', numbers]], policies.policies),
      el('details', {id: 'actors'}, el('summary', {}, `Actors: ${actors.actors.length}`),
        table('Actors', [['run', 'Run', plain], ['actor', 'Actor', plain], ['id', 'Name', plain], ['state', 'State', state], ['mailbox', 'Mailbox', count, true],
          ['oldest_seconds', 'Oldest message', seconds, true], ['progress_seconds', 'Since progress', seconds, true], ['detail', 'Says', plain]], actors.actors)));
  };
  await draw();
  page.follow({topics: 'live'}, calmly(() => draw().catch(page.fail), 700));
}
