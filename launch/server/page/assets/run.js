// A run: overview, tasks, episodes, groups, violations, slots, configuration and log.

import {get, isStored, path, send} from './api.js';
import {bars, byPosition, lanes} from './charts.js';
import {code} from './code.js';
import {groups} from './groups.js';
import {filterBar, PAGE, pager, sorting} from './lists.js';
import {episodeColumns} from './live.js';
import {calmly, card, chips, count, el, meter, number, plain, pressing, problem, seconds, state, table, times, when} from './parts.js';
import {search} from './search.js';

const tabs = [['overview', 'Overview'], ['search', 'Search'], ['tasks', 'Tasks'], ['episodes', 'Episodes'], ['groups', 'Groups'], ['findings', 'Violations'],
  ['lanes', 'Slots over time'], ['config', 'Configuration'], ['log', 'Log']];

function runHead(page, run, what, searches) {
  return [el('h2', {}, 'Run ', el('span', {}, plain(run))),
    el('div', {class: 'tabs', role: 'navigation', 'aria-label': 'Of this run'},
      tabs.filter(([key]) => (!isStored || key !== 'log') && (searches || key !== 'search')).map(([key, title]) => el('a', {href: page.address(['runs', run, key]), 'aria-current': key === what && 'page'}, title)),
      !isStored && el('a', {href: page.address(['compare'], {a: run})}, 'Compare with …'))];
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
  const makers = {overview, search, tasks, episodes, groups, findings, lanes: lanesOf, config, log};
  const make = makers[what];
  if (!make) return page.fail({category: 'not_found', message: `A run has no page '${what}'.`});
  const [about, begun] = await Promise.all([isStored ? {verbs: []} : get(path('about'), {}, page.signal), get(path('runs', run, 'config'), {}, page.signal).catch(() => null)]);
  const searches = (begun?.config.search?.strategy ?? 'off') !== 'off';
  const draw = async () => page.draw(runHead(page, run, what, searches), await make(page, run, (now) => controls(about, run, now, draw), draw));
  await draw().catch(page.fail); // a run that has just begun comes with its first event
  if (what === 'config') return;
  const again = calmly(() => draw().catch(page.fail), what === 'episodes' ? 700 : 2000);
  page.follow({run, topics: what === 'episodes' ? 'turns,runs,live' : 'turns,runs'}, again);
}

// -- overview --------------------------------------------------------------------------------------

async function overview(page, run, buttons, again) {
  const others = (page.query.with ?? '').split(',').filter((x) => x && x !== run).slice(0, 5);
  const positionsOf = (name) => get(path('runs', name, 'positions'), {}, page.signal);
  const [x, positions, perTask, more] = await Promise.all([get(path('runs', run), {}, page.signal), positionsOf(run),
    get(path('runs', run, 'tasks'), {limit: 12, sort: '-turns'}, page.signal), Promise.all(others.map((name) => positionsOf(name).catch(() => null)))]);
  // Why it waits is a question of a run in progress. The list of runs costs the most, so the first drawing does without.
  const ended = ['finished', 'cancelled', 'failed'].includes(x.state);
  const [why] = await Promise.all([ended ? null : get(path('runs', run, 'explain'), {}, page.signal).catch(() => null), listRuns(page, again)]);
  const row = page.runs?.find((r) => r.name === run) ?? {};
  const series = (key) => [[run, positions[key]], ...others.map((name, i) => [name, more[i]?.[key] ?? []])];
  const known = new Set(['format', 'built', 'correct', 'timed', 'faster']);
  const episodes = row.episodes ? `${count(row.ended)} of ${count(row.episodes)}` : count(x.episodes.ended);
  return [
    el('div', {class: 'cards'}, card('State', state(x.state), row.failure ?? ''),
      card('Episodes', [episodes, row.episodes > 0 && meter(row.ended / row.episodes, `${episodes} episodes ended`)],
        row.left_seconds ? `about ${seconds(row.left_seconds)} left` : `${x.episodes.accepted} accepted, ${x.episodes.rejected} rejected, ${x.episodes.infrastructure} infrastructure`),
      card('Turns', count(x.turns)), card('Mean best reward', number(x.mean_reward)),
      card('Best speedup, lower bound', times(x.best_speedup_lower), bestLink(page, run, x.best_turn)), card('Geomean speedup', times(x.geomean_speedup)),
      card('Evidence', number(x.evidence), `${count(x.near_misses)} near misses`),
      card('Model', plain((x.models ?? []).join(', ') || '–')),
      card('Tokens', count(x.completion_tokens), `${count(x.prompt_tokens)} of prompts`), card('Time', seconds(x.wall_seconds))),
    page.runs && tagsOf(page, run, row.tags ?? [], again), buttons(x.state),
    why && explanation(why),
    overlayForm(page, run, others, (page.runs ?? []).map((r) => r.name)),
    el('div', {class: 'charts'},
      byPosition('Reward by turn position', series('reward'), ''), byPosition('Speedup by turn position', series('speedup'), '×'),
      bars('Turns that passed each stage', [['all turns', x.turns, count(x.turns)],
        ...x.funnel.filter((f) => known.has(f.step)).map((f) => [f.step, f.turns, `${count(f.turns)} (${Math.round((f.share ?? 0) * 100)} %)`])], x.turns),
      bars('Work of turns, mean of a turn', x.time.map((t) => [t.stage, t.mean_work_seconds ?? 0, seconds(t.mean_work_seconds)])),
      bars('Waiting of turns for a worker, mean of a turn', x.time.map((t) => [t.stage, t.mean_wait_seconds ?? 0, seconds(t.mean_wait_seconds)])),
      bars('Verdicts', Object.entries(x.categories).sort((a, b) => b[1] - a[1]).map(([name, turns]) => [name, turns, count(turns)]))),
    el('h3', {}, 'Tasks'), taskTable(page, run, perTask, null),
    perTask.matching > perTask.tasks.length && el('p', {}, el('a', {href: page.address(['runs', run, 'tasks'])}, `All ${count(perTask.matching)} tasks`))];
}

/** Puts the list into `page.runs`. The first one is not waited for: with it everything is drawn again. */
async function listRuns(page, again) {
  const asked = get(path('runs'), {limit: 1000, sort: '-began_at'}, page.signal).then((x) => { page.runs = x.runs; });
  if (page.runs) return asked;
  asked.then(again).catch(page.fail);
}

function bestLink(page, run, turn) {
  if (!turn) return '';
  const [episode, number] = turn.split('.t');
  return el('a', {href: page.address(['runs', run, 'episodes', episode], {turn: number})}, plain(turn));
}

/** Tags of a run, and a field that changes them. */
function tagsOf(page, run, tags, again) {
  if (isStored) return el('p', {}, chips(tags));
  const put = (all) => send('POST', path('runs', run, 'tags'), {tags: all}).then(again).catch((why) => document.getElementById('tags-said')?.replaceChildren(problem(why)));
  return el('form', {class: 'bar tags', onsubmit: (event) => {
    event.preventDefault();
    const field = event.target.querySelector('#tag'), word = field.value.trim();
    field.value = '';
    if (word) put([...tags, word]);
  }}, tags.map((tag) => el('button', {type: 'button', class: 'chip', title: `Remove the tag ${tag}`, 'aria-label': `Remove the tag ${tag}`, onclick: () => put(tags.filter((x) => x !== tag))}, plain(tag), ' ×')),
    el('label', {}, 'Add a tag', el('input', {id: 'tag', placeholder: 'baseline', pattern: '[A-Za-z0-9._\\-]{1,64}', title: 'letters, digits, dot, dash', autocomplete: 'off'})), el('button', {}, 'Add'), el('span', {class: 'note', role: 'status', id: 'tags-said'}));
}

function overlayForm(page, run, others, names) {
  const free = names.filter((x) => x !== run && !others.includes(x));
  const put = (all) => page.go({with: all.join(',')});
  return (free.length > 0 || others.length > 0) && el('form', {class: 'bar', onsubmit: (event) => event.preventDefault()},
    free.length > 0 && el('label', {}, 'Lay another run over the charts',
      el('select', {id: 'with', onchange: (event) => event.target.value && put([...others, event.target.value])},
        el('option', {value: ''}, 'choose a run'), free.map((name) => el('option', {value: name}, plain(name))))),
    others.map((name) => el('button', {type: 'button', class: 'chip', 'aria-label': `Remove ${name} from the charts`, onclick: () => put(others.filter((x) => x !== name))}, plain(name), ' ×')));
}

/** What `explain` says, as sentences. */
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

// -- lists -----------------------------------------------------------------------------------------

const asked = (page) => ({where: page.query.where, sort: page.query.sort, offset: page.query.offset, limit: PAGE});

function taskTable(page, run, x, order) {
  if (!x.tasks.length) return el('p', {}, 'No task matches.');
  return table('Tasks of this run', [
    ['task', 'Task', (v) => el('a', {href: page.address(['runs', run, 'episodes'], {where: `task=${v}`})}, plain(v)), false, 'task'],
    ['episodes', 'Episodes', count, true, 'episodes'], ['turns', 'Turns', count, true, 'turns'],
    ['accepted', 'Accepted turns', count, true, 'accepted'], ['reward', 'Mean best reward', (v) => number(v), true, 'reward'],
    ['best_speedup_lower', 'Best speedup, lower bound', times, true, 'best_speedup_lower'],
    ['best_turn', 'Best turn', (v) => bestLink(page, run, v) || '–'], ['findings', 'Violations', (v) => (v ? el('span', {class: 'bad'}, count(v)) : '0'), true, 'findings']],
  x.tasks, order, (r) => r.task);
}

async function tasks(page, run) {
  const x = await get(path('runs', run, 'tasks'), asked(page), page.signal);
  return [filterBar(page, 'accepted=0 and turns>4', 'task, episodes, turns, accepted, reward, best_speedup_lower, findings'), taskTable(page, run, x, sorting(page)), pager(page, x)];
}

async function episodes(page, run) {
  const x = await get(path('runs', run, 'episodes'), asked(page), page.signal);
  const columns = episodeColumns(page, () => run);
  columns.splice(3, 0, ['categories', 'Turns so far', plain, false, 'categories']);
  columns.splice(8, 0, ['findings', 'Violations', (v) => (v ? el('span', {class: 'bad'}, count(v)) : '0'), true, 'findings']);
  return [filterBar(page, 'state=accepted and best_reward>0.5', 'id, task, state, turns, age, best_reward, best_speedup_lower, categories, findings, queue, position, worker'),
    table(`${count(x.total ?? x.matching)} episodes${x.live ? ', live' : ''}`, columns, x.episodes, sorting(page), (r) => r.id), pager(page, x)];
}

async function findings(page, run) {
  const x = await get(path('runs', run, 'findings'), asked(page), page.signal);
  const episode = (turn) => turn.slice(0, turn.lastIndexOf('.'));
  const columns = [['turn', 'Turn', (t) => el('a', {href: page.address(['runs', run, 'episodes', episode(t)], {turn: t.split('.t')[1]})}, plain(t)), false, 'turn'],
    ['severity', 'Severity', state, false, 'severity'], ['rule', 'Rule', plain, false, 'rule'], ['evidence', 'Evidence', plain],
    ['task', 'Task', plain, false, 'task'], ['category', 'Verdict', plain, false, 'category'], ['committed_at', 'When', when, false, 'committed_at']];
  return [filterBar(page, 'severity=critical', 'turn, task, rule, severity, evidence, category'),
    x.findings.length ? table('Violations', columns, x.findings, sorting(page), (r) => `${r.turn} ${r.rule} ${r.evidence}`) : el('p', {}, 'No violation.'), pager(page, x)];
}

const SLOT_USES = 400; // more are no longer to be told apart

async function lanesOf(page, run) {
  const x = await get(path('runs', run, 'lanes'), {limit: SLOT_USES, offset: page.query.offset}, page.signal);
  const picture = lanes(x.evaluations, (e) => page.address(['runs', run, 'episodes', e.turn.slice(0, e.turn.lastIndexOf('.'))], {turn: e.turn.split('.t')[1]}));
  const waits = [...x.evaluations].sort((a, b) => b.waited_seconds - a.waited_seconds).slice(0, 20);
  return [picture ?? el('p', {}, 'Nothing was evaluated yet.'), x.matching > SLOT_USES && [el('p', {class: 'note'}, 'The latest first.'), pager(page, x, SLOT_USES)],
    waits.length > 0 && table(x.matching > SLOT_USES ? 'Longest waits of these for a slot' : 'Longest waits for a slot', [['turn', 'Turn', plain], ['waited_seconds', 'Waited', seconds, true],
      ['held', 'Held it', (_, r) => seconds(r.end - r.begin), true], ['lane', 'Device', plain], ['category', 'Verdict', plain]], waits, null, (r) => r.turn)];
}

// -- texts -----------------------------------------------------------------------------------------

async function config(page, run) {
  const x = await get(path('runs', run, 'config'), {}, page.signal);
  return [el('p', {class: 'note'}, 'What this run was started with; ', el('code', {}, 'kernelmill config diff'), ' compares it with the defaults.'),
    code('Configuration', JSON.stringify(x.config, null, 2), 'json', {id: 'config'})];
}

async function log(page, run) {
  const x = await get(path('runs', run, 'log'), {tail: 500}, page.signal);
  const lines = x.text.split('\n').filter(Boolean);
  return [el('p', {class: 'note'}, `The last ${count(lines.length)} lines of ${plain(x.file)}.`),
    el('pre', {class: 'log', tabindex: '0', 'aria-label': 'Log'}, lines.map((line) => el('span', {class: /\b(error|critical|warning)\b/i.test(line.slice(0, 60)) ? 'odd' : null}, plain(line))))];
}
