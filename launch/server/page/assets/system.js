// Machines, slots, policy servers, and the actors behind them.

import {get, path, send} from './api.js';
import {calmly, count, el, number, plain, pressing, problem, seconds, state, table} from './parts.js';

const numbers = (x) => plain(Object.entries(x ?? {}).map(([k, v]) => `${k} ${Number.isInteger(v) ? count(v) : number(v)}`).join(', '));

/** Tokens a second between two samples, by server; the first sample has none. */
function tokenRates() {
  const before = new Map();
  return (rows) => {
    const now = performance.now() / 1000;
    return rows.map((row) => {
      const tokens = row.numbers?.completion_tokens;
      if (tokens === undefined) return row;
      const key = `${row.run} ${row.actor} ${row.id}`, known = before.get(key);
      // The monitor shows the same sample for up to a second: only another one has a rate.
      if (!known || tokens < known.tokens) before.set(key, {tokens, at: now, rate: null});
      else if (now - known.at >= 2) before.set(key, {tokens, at: now, rate: (tokens - known.tokens) / (now - known.at)});
      return {...row, rate: before.get(key).rate};
    });
  };
}

/** A form that attaches a policy server to the head. */
function attachForm(page, again) {
  const field = (id, title, more) => el('label', {}, title, el('input', {id: `attach-${id}`, name: id, autocomplete: 'off', ...more}));
  return el('form', {class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    const said = event.target.querySelector('[role=status]');
    const body = Object.fromEntries([...new FormData(event.target)].filter(([, v]) => v !== ''));
    send('POST', path('policies'), body).then(again).catch((why) => said.replaceChildren(problem(why)));
  }}, field('url', 'Address of a policy server', {type: 'url', required: true, placeholder: 'http://HOST:8000/v1'}),
    field('name', 'Name'), field('model', 'Model'), el('button', {}, 'Attach'), el('span', {class: 'note', role: 'status'}));
}

export async function systemPage(page) {
  const about = await get(path('about'), {}, page.signal);
  const may = (verb) => about.verbs.includes(verb);
  const rates = tokenRates();
  const draw = async () => {
    const [nodes, gpus, policies, actors] = await Promise.all(
      ['nodes', 'gpus', 'policies', 'actors'].map((what) => get(path(what), {}, page.signal)));
    const drain = (_, n) => n.state !== 'serving' ? '' : pressing('Drain', `Drain ${n.node}? It finishes its jobs and leaves.`,
      () => send('POST', path('nodes', n.node, 'control'), {verb: 'drain'}).then(draw));
    const detach = (_, x) => pressing('Detach', `Detach ${x.name}? It finishes its requests first.`,
      () => send('DELETE', path('policies', x.name)).then(draw));
    page.draw(el('h2', {}, 'Nodes, GPUs, policy servers'),
      !nodes.nodes.length && el('p', {}, 'No run is in progress: no active machines.'),
      nodes.nodes.length > 0 && table('Machines', [['node', 'Node', plain], ['state', 'State', state], ['hardware', 'Hardware', plain], ['slots', 'Slots', count, true],
        ['busy', 'Busy', count, true], ['compilers', 'Compilers', count, true], ['cores', 'Cores', count, true], ['load', 'Load', (v) => number(v), true],
        ...(may('drain') ? [['drain', 'Control', drain]] : [])], nodes.nodes),
      el('h3', {}, 'Slots'),
      gpus.gpus.length > 0 && table('Slots and GPUs', [['node', 'Node', plain], ['slot', 'Slot', plain], ['state', 'State', state], ['detail', 'What it does', plain],
        ['age_seconds', 'For', seconds, true], ['done', 'Done', count, true], ['infrastructure_faults', 'Faults', count, true], ['celsius', '°C', count, true],
        ['watts', 'W', count, true], ['clock_mhz', 'MHz', count, true]], gpus.gpus),
      el('h3', {}, 'Policy servers'),
      policies.servers?.length > 0 && table('Policy servers of this head', [['name', 'Name', plain], ['state', 'State', state], ['url', 'Address', plain], ['kind', 'Kind', plain],
        ['model', 'Model', plain], ['weights', 'Weights', plain], ['in_flight', 'In flight', count, true], ['done', 'Done', count, true], ['failed', 'Failed', count, true],
        ...(may('detach') ? [['detach', 'Control', detach]] : [])], policies.servers),
      may('attach') && attachForm(page, draw),
      policies.policies.length > 0 && table('Policy servers and requests that are tried again', [['run', 'Run', plain], ['actor', 'What', plain], ['id', 'Name', plain], ['state', 'State', state],
        ['rate', 'Tokens a second', (v) => (v === undefined || v === null ? '–' : number(v, 1)), true], ['detail', 'Says', plain], ['numbers', 'Numbers', numbers]], rates(policies.policies)),
      el('details', {id: 'actors'}, el('summary', {}, `Actors: ${actors.actors.length}`),
        table('Actors', [['run', 'Run', plain], ['actor', 'Actor', plain], ['id', 'Name', plain], ['state', 'State', state], ['mailbox', 'Mailbox', count, true],
          ['oldest_seconds', 'Oldest message', seconds, true], ['progress_seconds', 'Since progress', seconds, true], ['detail', 'Says', plain]], actors.actors)));
  };
  await draw();
  page.follow({topics: 'live'}, calmly(() => draw().catch(page.fail), 700));
}
