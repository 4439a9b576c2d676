// An episode turn by turn, as it happens: an index beside it, and of each turn the verdict, what changed, the code, the
// times, and the conversation.

import {get, isStored, path, Refused, save, send} from './api.js';
import {candidateGraph, intervals, lineage, ratios, timesOf} from './charts.js';
import {code, diffBlock, languageOf} from './code.js';
import {conversation} from './conversation.js';
import {diff, folded} from './diff.js';
import {calmly, card, count, el, number, plain, problem, seconds, state, table, text, times, turnWord, when} from './parts.js';

export async function episodePage(page, run, episode) {
  let shown = -1, branches = [];
  const draw = async () => {
    const [x, notes] = await Promise.all([get(path('runs', run, 'episodes', episode), {}, page.signal),
      isStored ? {notes: []} : get(path('runs', run, 'notes'), {}, page.signal)]);
    const live = !x.end && !isStored && await get(path('episodes'), {run, where: `id=${episode}`}, page.signal).catch(() => null);
    if (!x.turns.length && !x.end && !live?.episodes?.length)
      throw new Refused(404, {category: 'not_found', message: `Nothing of ${episode} is stored, and it is not in progress.`});
    if (x.turns.length !== shown && x.turns.length > 0) // forks are looked for in all runs
      branches = (await get(path('runs', run, 'episodes', episode, 'lineage'), {}, page.signal).catch(() => null))?.branches ?? branches;
    page.draw(head(page, run, x, live?.episodes?.[0]),
      el('div', {class: 'beside'}, index(page, x),
        el('div', {}, pictures(page, x, branches), x.turns.map((turn, i) => turnSection(page, run, x, i, notes.notes, draw)))));
    if (page.query.turn && shown < 0) document.getElementById(`turn-${page.query.turn}`)?.scrollIntoView();
    shown = x.turns.length;
    return x;
  };
  const x = await draw();
  if (x.end) return;
  const again = calmly(() => draw().catch(page.fail), 250);
  page.follow({run, topics: 'turns,runs,live'}, (name, data) => {
    // Its own turns, the end of its group, and what it does meanwhile.
    if (name !== 'turn' || data.episode === episode) again();
  });
}

function head(page, run, x, live) {
  const end = x.end;
  const to = (id, name, title, sign) => el('a', {id, 'aria-label': `${title}: ${name ?? 'none'}`, href: name && page.address(['runs', run, 'episodes', name])}, sign);
  return [
    el('h2', {}, el('a', {href: page.address(['runs', run, 'episodes'])}, plain(run)), ` / ${plain(x.episode)} `, el('span', {class: 'dim'}, plain(x.task)), ' ',
      el('span', {class: 'steps'}, x.previous && to('before', x.previous, 'The episode before', `← ${x.previous}`), ' ', x.next && to('after', x.next, 'The next episode', `${x.next} →`))),
    el('div', {class: 'cards', id: 'summary'},
      card('State', state(end ? end.outcome : live?.state ?? 'open'), end ? end.stop_reason : plain(live?.detail ?? '')),
      card('Turns', count(x.turns.length)),
      card('Best speedup, lower bound', times(end?.best_speedup_lower)),
      end?.terminal_state && card('Tools', state(end.terminal_state), `${count(end.steps)} steps, ${seconds(end.gpu_seconds)} of the machine that ran kernels`),
      end && card('Returns', end.returns.map((r) => number(r)).join('  ')),
      end && card('Data label', plain(end.readiness), plain(end.reasons.join('; ')))),
    !x.turns.length && el('p', {}, end ? 'It has no turns.' : 'No turn is committed yet.')];
}

/** The turns, always in sight; "turn=N" of the address is the one that was asked for. */
function index(page, x) {
  if (!x.turns.length) return null;
  return el('nav', {class: 'index', 'aria-label': 'Turns'}, el('ol', {}, x.turns.map((t) => el('li', {},
    el('a', {href: page.address(page.parts, {...page.query, turn: t.turn}), 'aria-current': String(page.query.turn) === String(t.turn) && 'true',
      onclick: (event) => { event.preventDefault(); page.replace({turn: t.turn}); document.getElementById(`turn-${t.turn}`)?.scrollIntoView(); document.getElementById(`title-${t.turn}`)?.focus({preventScroll: true}); }},
      `T${turnWord(t.turn).slice(1)} `, state(t.category)),
    el('span', {class: 'note'}, ` ${t.reward === null ? '' : number(t.reward)}${t.timing ? `, ${times(t.timing.speedup.estimate)}` : ''}`)))));
}

function pictures(page, x, branches) {
  if (!x.turns.length) return null;
  const folder = (branch) => branch.directory.slice(branch.directory.lastIndexOf('/') + 1);
  const to = (turn, branch) => page.address(branch ? ['runs', folder(branch), 'episodes', branch.episode] : page.parts, {turn: turn.turn});
  return el('div', {class: 'charts'}, lineage(x.turns, branches, to),
    x.candidates.length > 0 && candidateGraph(x.candidates, (c) => page.address(page.parts, {turn: c.turn})),
    x.problems.map((p) => el('p', {class: 'problem'}, plain(p))), intervals(x.turns));
}

function changes(x, i) {
  const turn = x.turns[i];
  const parent = x.turns.find((t) => t.id === turn.parent) ?? x.turns[i - 1];
  if (!parent || !turn.candidate.bytes) return null;
  const lines = diff(plain(parent.candidate.text), plain(turn.candidate.text));
  const [plus, minus] = ['+', '-'].map((sign) => lines.filter(([s]) => s === sign).length);
  return el('details', {open: true, id: `diff-${turn.turn}`}, el('summary', {}, `Changes since ${turnWord(parent.turn)}: ${plus} lines added, ${minus} removed`),
    plus + minus === 0 ? el('p', {}, 'The same code.') : diffBlock('Changes', folded(lines), languageOf(turn.candidate.text)));
}

function gates(turn) {
  return el('ul', {class: 'gates', 'aria-label': 'Gates'}, turn.gates.map((g) =>
    el('li', {class: `gate ${g.status}`, title: plain(g.reason)}, `${plain(g.name)}: `, state(g.status), g.reason && el('span', {class: 'note'}, ` ${plain(g.reason)}`))));
}

function rewardOf(turn) {
  const parts = turn.components.filter((c) => c.value * c.weight !== 0).map((c) => `${plain(c.name)} ${number(c.value * c.weight)}`);
  return `reward ${number(turn.reward)}${parts.length > 1 ? ` (${parts.join(' + ')})` : ''}`;
}

function candidate(turn, open, whole) {
  if (!turn.candidate.bytes) return null;
  const x = turn.candidate;
  return el('details', {id: `candidate-${turn.turn}`, open}, el('summary', {}, 'Candidate ', el('span', {class: 'note'}, `${count(x.text.split('\n').length)} lines`)),
    code('Candidate', x.text), x.cut && el('p', {class: 'note'}, 'Only the beginning is shown. ', el('button', {type: 'button', onclick: whole}, 'Save the whole text')));
}

function turnSection(page, run, x, i, notes, again) {
  const turn = x.turns[i];
  const name = `${x.episode}.t${turn.turn}`;
  const whole = (part) => () => save(path('runs', run, 'turns', name, part), `${run}-${name}.${part}.txt`).catch(page.fail);
  const id = (what) => `${what}-${turn.turn}`;
  const named = (node, what) => { if (node) node.id = id(what); return node; };
  return el('section', {class: 'turn', id: `turn-${turn.turn}`, 'aria-labelledby': id('title')},
    el('h3', {id: id('title'), tabindex: '-1'}, `T${turnWord(turn.turn, turn.max_turns).slice(1)}: `, state(turn.category), ` ${plain(turn.transition)}`,
      el('span', {class: 'note'}, ` ${name}; ${rewardOf(turn)}; ${when(turn.committed_at)}`)),
    gates(turn),
    turn.error && el('p', {class: 'problem'}, plain(turn.error.message), el('br'), el('span', {class: 'note'}, plain(turn.error.hint))),
    turn.findings.length > 0 && table('Violations', [['severity', 'Severity', state], ['rule', 'Rule', plain], ['evidence', 'Evidence', plain]], turn.findings),
    changes(x, i), candidate(turn, i === 0, whole('candidate')),
    turn.timing && el('div', {class: 'charts'}, ratios(turn.timing), timesOf(turn.timing)),
    named(text('Compiler output', turn.build.log, !turn.build.compiled, whole('build')), 'build'),
    named(casesOf(turn), 'cases'), named(profileOf(turn), 'profile'), named(callsOf(turn), 'calls'),
    named(text('What it printed', turn.output), 'output'),
    el('details', {id: id('talk'), open: true}, el('summary', {}, 'Conversation'), conversation(turn, whole)),
    el('p', {class: 'note'}, Object.entries(turn.seconds).filter(([k, v]) => v + turn.waited[k] > 0)
      .map(([k, v]) => `${k} ${seconds(v)}${turn.waited[k] > 0.05 ? ` (waited ${seconds(turn.waited[k])})` : ''}`).join(', '),
      `; ${count(turn.prompt_tokens)} + ${count(turn.completion_tokens)} tokens; ${plain(turn.model)}; ${plain(turn.device)}`),
    !isStored && notesOf(page, run, name, notes, again, id('notes')));
}

function callsOf(turn) {
  if (!turn.calls.length) return null;
  return el('details', {open: true}, el('summary', {}, `Calls of tools: ${turn.calls.length}`),
    table('Calls of tools', [['tool', 'Tool', plain], ['status', 'Status', state], ['transition', 'Transition', plain],
      ['output', 'Candidate', (v, row) => (row.input === v ? plain(v || '–') : `${plain(row.input || '–')} → ${plain(v || '–')}`)],
      ['steps', 'Steps', count, true], ['gpu_seconds', 'GPU time', seconds, true], ['first_line', 'Observation', plain]], turn.calls),
    turn.calls.map((call, i) => [text(`Call ${i}, ${plain(call.tool)}: arguments`, call.arguments), text(`Call ${i}, ${plain(call.tool)}: observation`, call.observation)]));
}

function casesOf(turn) {
  if (!turn.cases.length) return null;
  const failed = turn.cases.filter((c) => !c.pass).length;
  return el('details', {open: failed > 0}, el('summary', {}, `Cases: ${turn.cases.length - failed} of ${turn.cases.length} right`),
    table('Cases', [['name', 'Case', plain], ['shape', 'Shape', plain], ['hidden', 'Hidden', (v) => (v ? 'yes' : 'no')],
      ['pass', 'Result', (v) => state(v ? 'pass' : 'fail')], ['max_error', 'Largest error', (v) => (v === null ? 'not finite' : Number(v).toExponential(2)), true],
      ['bound', 'Bound', (v) => (v === null ? '–' : Number(v).toExponential(2)), true], ['first_bad', 'First', plain]], turn.cases));
}

function profileOf(turn) {
  const p = turn.profile;
  if (!p) return null;
  return el('details', {}, el('summary', {}, p.available ? `Profile: limited by ${plain(p.bottleneck)} (confidence ${number(p.confidence)})` : 'Profile: none'),
    [...p.evidence, ...p.missing].map((line) => el('p', {}, plain(line))),
    p.counters.length > 0 && table('Counters', [['name', 'Counter', plain], ['value', 'Value', (v) => count(v), true], ['unit', 'Unit', plain]], p.counters));
}

const labels = [['clean', 'Clean'], ['reward_hack', 'Reward hack'], ['rubric_leak', 'Rubric leak'], ['bug', 'Bug']];

function notesOf(page, run, turn, notes, again, id) {
  const mine = notes.filter((n) => n.turn === turn);
  const label = el('select', {id: `${id}-label`}, labels.map(([value, title]) => el('option', {value}, title)));
  const quote = el('input', {id: `${id}-quote`, maxlength: 2000}), words = el('input', {id: `${id}-text`, maxlength: 2000});
  const said = el('span', {class: 'note', role: 'status', id: `${id}-said`});
  const failed = (why) => document.getElementById(said.id)?.replaceChildren(problem(why));
  const value = (what) => document.getElementById(`${id}-${what}`).value;
  const form = el('form', {class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    send('POST', path('runs', run, 'notes'), {turn, label: value('label'), quote: value('quote'), text: value('text')})
      .then(() => { for (const what of ['quote', 'text']) document.getElementById(`${id}-${what}`).value = ''; return again(); }).catch(failed);
  }}, el('label', {}, 'Your verdict', label), el('label', {}, 'Quoted line', quote), el('label', {}, 'Note', words), el('button', {}, 'Keep the note'), said);
  return el('details', {id, open: mine.length > 0}, el('summary', {}, `Readers' notes: ${mine.length}`),
    mine.map((n) => el('p', {'data-key': n.id}, state(n.label), ` ${plain(n.text ?? '')} `, n.quote && el('q', {}, plain(n.quote)), el('span', {class: 'note'}, ` ${when(n.at)} `),
      el('button', {type: 'button', onclick: () => send('DELETE', path('runs', run, 'notes', n.id)).then(again).catch(failed)}, 'Remove'))), form);
}
