// Two runs, groups, episodes or turns side by side.

import {get, path} from './api.js';
import {pairsOf} from './charts.js';
import {chips, count, el, number, plain, problem, state, table} from './parts.js';

export async function comparePage(page) {
  const {a, b} = page.query;
  const runs = await get(path('runs'), {limit: 1000, sort: '-began_at'}, page.signal);
  const head = [el('h2', {}, 'Side by side'), form(page, runs.runs.map((r) => r.name))];
  if (!a || !b) {
    page.draw(head, el('p', {class: 'note'}, 'Tick two runs in the list of runs, or name two runs, two groups (RUN/g3), two episodes (RUN/g3.e1) or two turns (RUN/g3.e1.t2).'));
    return;
  }
  page.draw(head, el('p', {class: 'note'}, 'Comparing …'));
  try {
    const x = await get(path('compare'), {a, b}, page.signal);
    const tags = (what) => chips(runs.runs.find((r) => r.name === what.split('/')[0])?.tags);
    const show = {runs: ofRuns, groups: ofGroups, episodes: ofEpisodes, turns: (_, y) => fields(y.groups)}[x.kind];
    page.draw(head, el('p', {}, el('b', {}, 'A '), side(page, x.a.name, a), tags(a), '  ', el('b', {}, 'B '), side(page, x.b.name, b), tags(b)), show(page, x));
  } catch (why) {
    if (why.name !== 'AbortError') page.draw(head, problem(why));
  }
}

function form(page, names) {
  const field = (id, title) => el('label', {}, title, el('input', {id, name: id, list: 'run-names', value: page.query[id] ?? '', required: true, spellcheck: 'false', autocomplete: 'off'}));
  return el('form', {class: 'bar', onsubmit: (event) => { event.preventDefault(); page.go(Object.fromEntries(new FormData(event.target))); }},
    field('a', 'A'), field('b', 'B'), el('button', {}, 'Compare'),
    el('button', {type: 'button', onclick: () => page.go({a: page.query.b, b: page.query.a})}, 'Swap'),
    el('datalist', {id: 'run-names'}, names.map((name) => el('option', {value: name}))));
}

/** A link to what was compared. */
function side(page, name, asked) {
  const [run, what] = asked.split('/');
  const [, episode, turn] = /^(g\d+\.e\d+)(?:\.t(\d+))?$/.exec(what ?? '') ?? [];
  const to = episode ? page.address(['runs', run, 'episodes', episode], {turn}) : what ? page.address(['runs', run, 'groups'], {where: `group=${what}`}) : page.address(['runs', run]);
  return el('a', {href: to}, plain(name));
}

const value = (x) => x === null || x === undefined ? '–' : typeof x === 'number' ? (Number.isInteger(x) ? count(x) : x.toPrecision(4))
  : typeof x !== 'object' ? plain(x) : 'estimate' in x ? `${number(x.estimate)} [${number(x.low)}, ${number(x.high)}]` : plain(JSON.stringify(x));

const values = (title, rows) => rows?.length > 0 && table(title, [['key', 'What', plain], ['a', 'A', value], ['b', 'B', value]], rows);

const signed = (x, digits = 3) => (x === null || x === undefined ? '–' : `${x > 0 ? '+' : ''}${number(x, digits)}`);

const noInterval = {few_tasks: 'needs 6 tasks', no_spread: 'all tasks differ by as much'};

function ofRuns(page, x) {
  const {tasks} = x;
  const words = (name) => plain(name.startsWith('fast_') ? name : name.replaceAll('_', ' '));
  const change = (s, v) => (v === null ? '–' : s.scale === 'ratio' ? `×${number(v, 3)}` : signed(v));
  const interval = (s) => (s.low === null ? noInterval[s.no_interval] ?? '–' : `${change(s, s.low)} to ${change(s, s.high)}`);
  const rows = [...x.by_task].sort((p, q) => Math.abs(q.difference ?? -1) - Math.abs(p.difference ?? -1)).slice(0, 100);
  const to = (task) => page.address(['runs', page.query.b, 'episodes'], {where: `task=${task}`});
  const lower = (v) => (v === null || v === undefined ? null : typeof v === 'object' ? v.low : v);
  const ofSide = (v) => `${count(v.correct)} of ${count(v.episodes)} right, reward ${value(v.reward)}, best speedup ${value(v.best_speedup)}`;
  return [x.notes.map((note) => el('p', {class: 'why'}, plain(note))),
    el('p', {}, `${count(tasks.compared)} tasks are in both; ${count(tasks.only_a.length)} in A only, ${count(tasks.only_b.length)} in B only, ${count(tasks.changed.length)} left out since their files differ.`),
    el('div', {class: 'charts'}, pairsOf('Reward, task by task: A hollow, B full', x.by_task.map((t) => ({task: t.task, a: t.a.reward, b: t.b.reward})), to),
      pairsOf('Best speedup, lower bound, task by task', x.by_task.map((t) => ({task: t.task, a: lower(t.a.best_speedup), b: lower(t.b.best_speedup)})), to)),
    table('Means of tasks, and what B differs by', [['metric', 'Metric', words], ['a', 'A', (v) => number(v, 3), true], ['b', 'B', (v) => number(v, 3), true],
      ['difference', 'B against A', (v, s) => change(s, v), true],
      ['low', '95 % interval', (_, s) => interval(s)], ['tasks', 'Tasks', count, true]], x.statistics),
    table('In how many tasks B is better', [['by', 'By', words], ['wins', 'B wins', count, true], ['losses', 'B loses', count, true], ['ties', 'Ties', count, true],
      ['p', 'Sign test', (v) => number(v, 3), true]], x.wins),
    table(`Tasks that differ most: ${rows.length} of ${x.by_task.length}`, [['task', 'Task', plain], ['a', 'A', ofSide], ['b', 'B', ofSide],
      ['difference', 'Reward', (v) => signed(v), true], ['faster', 'Faster', (v) => (v ? plain(v).toUpperCase() : '–')]], rows),
    values('Configuration that differs', x.configuration), values('Environment that differs', x.environment)];
}

function ofGroups(page, x) {
  const member = (m) => (m === null ? '–' : [state(m.outcome), ` return ${value(m.return)}, advantage ${value(m.advantage)}, best reward ${value(m.best_reward)}`]);
  return [values('Of the groups', x.values),
    table('Member by member', [['member', 'Member', (m) => `e${m}`], ['a', 'A', member], ['b', 'B', member]], x.members), best(x.best)];
}

function ofEpisodes(page, x) {
  const turn = (t) => (t === null ? '–' : [state(t.category), t.reward !== null && ` reward ${value(t.reward)}`, t.speedup !== null && ` speedup ${value(t.speedup)}`]);
  return [values('Of the episodes', x.values),
    table('Turn by turn', [['turn', 'Turn', (t) => `t${t}`], ['a', 'A', turn], ['b', 'B', turn], ['same_code', 'Code', (same) => (same ? 'same' : 'differs')]], x.turns), best(x.best)];
}

const best = (x) => x && [el('h3', {}, `Best turns: A ${plain(x.a)}, B ${plain(x.b)}`), fields(x.groups)];

/** The groups of fields of two turns: what differs is open, what does not is only named. */
function fields(groups) {
  const same = groups.filter((g) => g.equal).map((g) => g.group);
  const kind = (line) => ({'+': 'plus', '-': 'minus', '@': 'dim'})[line[0]] ?? null;
  return [groups.filter((g) => !g.equal).map((g) => el('details', {open: true, id: `field-${g.group}`}, el('summary', {}, plain(g.group)),
    values(`${g.group}, side by side`, g.values),
    g.diff && el('pre', {class: 'diff', tabindex: '0', 'aria-label': `Changes of ${g.group}`}, g.diff.split('\n').map((line) => el('span', {class: kind(line)}, plain(line)))))),
    same.length > 0 && el('p', {class: 'note'}, `The same in both: ${same.map(plain).join(', ')}.`)];
}
