// The list of runs, a run, and the live episodes.

import {get, path, send} from './api.js';
import {bars, byPosition, lanes} from './charts.js';
import {groups} from './groups.js';
import {filterBar, PAGE, pager, sorting} from './lists.js';
import {calmly, card, count, el, number, plain, pressing, seconds, state, table, times, when} from './parts.js';

export async function runsPage(page) {
  const {query} = page;
  const draw = async () => {
    const x = await get(path('runs'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
    const columns = [
      ['run', 'Run', (_, r) => el('a', {href: page.address(['runs', r.name])}, plain(r.run)), false, 'run'],
      ['state', 'State', state, false, 'state'],
      ['progress', 'Episodes', (_, r) => (r.episodes ? `${count(r.ended)} / ${count(r.episodes)}${r.left_seconds ? `, about ${seconds(r.left_seconds)} left` : ''}` : count(r.ended)), true, 'progress'],
      ['turns', 'Turns', count, true, 'turns'], ['accepted', 'Accepted', count, true, 'accepted'],
      ['reward', 'Mean best reward', (v) => number(v), true, 'reward'],
      ['best_speedup_lower', 'Best speedup, lower bound', times, true, 'best_speedup_lower'],
      ['geomean_speedup', 'Geomean speedup', times, true, 'geomean_speedup'],
      ['seconds', 'Time', seconds, true, 'seconds'], ['began_at', 'Began', when, false, 'began_at'],
      ['failure', 'Why it ended', (v, r) => plain(v || r.failure_category || '')]];
    page.draw(el('h2', {}, 'Runs'), filterBar(page, 'run, state, progress, turns, accepted, reward, best_speedup_lower, geomean_speedup, evidence, seconds'),
      x.runs.length ? table(`Runs below ${x.root}`, columns, x.runs, sorting(page)) : el('p', {}, 'No run matches.'), pager(page, x));
  };
  await draw();
  const again = calmly(() => draw().catch(page.fail), 2000);
  page.follow({topics: 'turns,runs'}, again);
}

const tabs = [['overview', 'Overview'], ['episodes', 'Episodes'], ['groups', 'Groups'], ['findings', 'Findings'], ['lanes', 'Slots over time']];

function runHead(page, run, what) {
  return [el('h2', {}, 'Run ', el('span', {}, plain(run))),
    el('div', {class: 'tabs', role: 'navigation', 'aria-label': 'Of this run'},
      tabs.map(([key, title]) => el('a', {href: page.address(['runs', run, key]), 'aria-current': key === what && 'page'}, title)),
      el('a', {href: page.address(['compare'], {a: run})}, 'Compare with …'))];
}

/** Buttons for what this server would obey of a run in progress. */
function controls(about, run, now, again) {
  const words = {pause: 'No new episodes start.', resume: 'Episodes start again.', cancel: 'It ends; committed turns are kept.'};
  const fits = {pause: ['running'], resume: ['paused', 'cancelled', 'failed', 'left'], cancel: ['running', 'paused']};
  const verbs = about.verbs.filter((v) => fits[v]?.includes(now));
  return verbs.length > 0 && el('p', {class: 'controls'}, verbs.map((verb) => pressing(verb[0].toUpperCase() + verb.slice(1),
    `${verb[0].toUpperCase() + verb.slice(1)} ${run}? ${words[verb]}`, () => send('POST', path('runs', run, 'control'), {verb}).then(again))));
}

export async function runPage(page, run, what) {
  const makers = {overview, episodes, groups, findings, lanes: lanesOf};
  const make = makers[what] ?? overview;
  const about = await get(path('about'), {}, page.signal);
  const draw = async () => page.draw(runHead(page, run, what), await make(page, run, (now) => controls(about, run, now, draw)));
  await draw().catch(page.fail); // a run that has just begun comes with its first event
  const again = calmly(() => draw().catch(page.fail), what === 'episodes' ? 700 : 2000);
  page.follow({run, topics: what === 'episodes' ? 'turns,runs,live' : 'turns,runs'}, again);
}

async function overview(page, run, buttons) {
  const [x, positions, why] = await Promise.all([get(path('runs', run), {}, page.signal), get(path('runs', run, 'positions'), {}, page.signal),
    get(path('runs', run, 'explain'), {}, page.signal).catch(() => null)]);
  const known = new Set(['format', 'built', 'correct', 'timed', 'faster']);
  return [
    el('div', {class: 'cards'}, card('State', state(x.state)), card('Turns', count(x.turns)),
      card('Episodes ended', count(x.episodes.ended), `${x.episodes.accepted} accepted, ${x.episodes.rejected} rejected, ${x.episodes.infrastructure} infrastructure`),
      card('Mean best reward', number(x.mean_reward)), card('Best speedup, lower bound', times(x.best_speedup_lower), x.best_turn), card('Geomean speedup', times(x.geomean_speedup)),
      card('Evidence', number(x.evidence), `${count(x.near_misses)} near misses`),
      card('Tokens', count(x.completion_tokens), `${count(x.prompt_tokens)} of prompts`), card('Time', seconds(x.wall_seconds))),
    buttons(x.state),
    why && explanation(why),
    el('div', {class: 'charts'},
      bars('Funnel: turns that passed each stage', [['all turns', x.turns, count(x.turns)],
        ...x.funnel.filter((f) => known.has(f.step)).map((f) => [f.step, f.turns, `${count(f.turns)} (${Math.round((f.share ?? 0) * 100)} %)`])], x.turns),
      bars('Work of turns, mean of a turn', x.time.map((t) => [t.stage, t.mean_work_seconds ?? 0, seconds(t.mean_work_seconds)])),
      bars('Waiting of turns for a worker, mean of a turn', x.time.map((t) => [t.stage, t.mean_wait_seconds ?? 0, seconds(t.mean_wait_seconds)])),
      byPosition('Reward by turn position', positions.reward, ''), byPosition('Speedup by turn position', positions.speedup, '×')),
    el('h3', {}, 'Verdicts'),
    table('Turns by category', [['category', 'Category'], ['turns', 'Turns', count, true]],
      Object.entries(x.categories).map(([category, turns]) => ({category, turns})).sort((a, b) => b.turns - a.turns))];
}

/** Whatever `explain` says, as sentences. */
function explanation(x) {
  const lines = [];
  const walk = (value) => {
    if (typeof value === 'string') lines.push(value);
    else if (Array.isArray(value)) value.forEach(walk);
    else if (value && typeof value === 'object') { if (value.text) lines.push(value.text + (value.next ? ` ${value.next}` : '')); }
  };
  walk(x.findings ?? x.why ?? x.text ?? []);
  if (!lines.length) return null;
  return el('div', {class: 'why'}, el('b', {}, 'Why it is waiting'), lines.map((line) => el('p', {}, plain(line))));
}

const episodeColumns = (page, name) => [
  ['id', 'Episode', (id, r) => el('a', {href: page.address(['runs', name(r), 'episodes', id])}, plain(name(r) === r.name ? `${r.run}/${id}` : id)), false, 'id'],
  ['state', 'State', state, false, 'state'], ['task', 'Task', plain, false, 'task'],
  ['turn', 'Turn', (_, r) => (r.max_turns ? `${(r.turn ?? 0) + 1} of ${r.max_turns}` : count(r.turns)), true, 'turn'],
  ['age_seconds', 'For', seconds, true, 'age_seconds'],
  ['best_reward', 'Best reward', (v) => number(v), true, 'best_reward'],
  ['best_speedup_lower', 'Best speedup, lower bound', times, true, 'best_speedup_lower'],
  ['detail', 'What happens', (v, r) => plain(r.position ? `${r.position}. in the queue ${r.queue}` : r.stop_reason ?? v ?? '')]];

async function episodes(page, run) {
  const {query} = page;
  const x = await get(path('runs', run, 'episodes'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
  const columns = episodeColumns(page, () => run);
  columns.splice(3, 0, ['categories', 'Turns so far', plain, false, 'categories']);
  columns.splice(8, 0, ['findings', 'Findings', (v) => (v ? el('span', {class: 'bad'}, count(v)) : '0'), true, 'findings']);
  return [filterBar(page, 'id, task, state, turns, age, reward, speedup, categories, findings, queue, position, worker'),
    table(`${count(x.total)} episodes${x.live ? ', live' : ''}`, columns, x.episodes, sorting(page)), pager(page, x)];
}

async function findings(page, run) {
  const {query} = page;
  const x = await get(path('runs', run, 'findings'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
  const episode = (turn) => turn.slice(0, turn.lastIndexOf('.'));
  const columns = [['turn', 'Turn', (t) => el('a', {href: page.address(['runs', run, 'episodes', episode(t)], {turn: t.split('.t')[1]})}, plain(t)), false, 'turn'],
    ['severity', 'Severity', state, false, 'severity'], ['rule', 'Rule', plain, false, 'rule'], ['evidence', 'Evidence', plain],
    ['task', 'Task', plain, false, 'task'], ['category', 'Verdict', plain, false, 'category'], ['committed_at', 'When', when, false, 'committed_at']];
  return [filterBar(page, 'turn, task, rule, severity, evidence, category'),
    x.findings.length ? table('Findings of integrity', columns, x.findings, sorting(page)) : el('p', {}, 'No finding.'), pager(page, x)];
}

async function lanesOf(page, run) {
  const x = await get(path('runs', run, 'lanes'), {limit: 1000, offset: page.query.offset}, page.signal);
  const picture = lanes(x.evaluations, (e) => page.address(['runs', run, 'episodes', e.turn.slice(0, e.turn.lastIndexOf('.'))], {turn: e.turn.split('.t')[1]}));
  const waits = [...x.evaluations].sort((a, b) => b.waited_seconds - a.waited_seconds).slice(0, 20);
  return [picture ?? el('p', {}, 'Nothing was evaluated yet.'),
    waits.length > 0 && table('Longest waits for a slot', [['turn', 'Turn', plain], ['waited_seconds', 'Waited', seconds, true],
      ['held', 'Held it', (_, r) => seconds(r.end - r.begin), true], ['lane', 'Device', plain], ['category', 'Verdict', plain]], waits)];
}

export async function livePage(page) {
  const {query} = page;
  const draw = async () => {
    const x = await get(path('episodes'), {where: query.where, sort: query.sort, offset: query.offset, limit: PAGE}, page.signal);
    const names = new Map(x.runs.map((r) => [r.run, r.directory.slice(r.directory.lastIndexOf('/') + 1)]));
    const name = (r) => names.get(r.run) ?? r.run;
    const columns = episodeColumns(page, name);
    columns.unshift(['run', 'Run', plain, false, 'run']);
    page.draw(el('h2', {}, 'Live episodes'), filterBar(page, 'run, id, task, state, age, turn, queue, position, worker, reward, speedup, error'),
      x.episodes.length ? table(`${count(x.live)} live episodes`, columns, x.episodes, sorting(page)) : el('p', {}, x.live ? 'None matches.' : 'No run is in progress.'), pager(page, x),
      x.runs.map((r) => table(`Queues of ${r.run}: ${r.state}, ${count(r.ended)} of ${count(r.episodes)} episodes ended`,
        [['queue', 'Queue', plain], ['state', 'State', state], ['waiting', 'Wait', count, true], ['leased', 'At work', count, true],
          ['places', 'Places', count, true], ['done', 'Done', count, true], ['mean_seconds', 'Mean', seconds, true],
          ['oldest_wait_seconds', 'Longest wait', seconds, true]], r.queues)));
  };
  await draw();
  const again = calmly(() => draw().catch(page.fail), 700);
  page.follow({topics: 'turns,runs,live'}, again);
}
