// What was said in a turn, as a conversation: prompts, the model's thoughts (folded) and words, its code, the feedback.

import {code, languageOf} from './code.js';
import {count, el, plain} from './parts.js';

/** Pieces of a completion, in order: {kind: "thought" | "code" | "words", text}. Tags that are not closed end with the text. */
export function pieces(text) {
  const result = [];
  const push = (kind, words) => { if (words.trim()) result.push({kind, text: words.replace(/^\n+|\s+$/g, '')}); };
  const tag = /<think>([\s\S]*?)(?:<\/think>|$)|<KERNEL>\s*([\s\S]*?)(?:<\/KERNEL>|$)|```[\w+-]*\n([\s\S]*?)(?:\n```|$)/g;
  let at = 0;
  for (const found of text.matchAll(tag)) {
    push('words', text.slice(at, found.index));
    if (found[1] !== undefined) push('thought', found[1]);
    else push('code', (found[2] ?? found[3]).replace(/^```[\w+-]*\n/, '').replace(/\n?```\s*$/, ''));
    at = found.index + found[0].length;
  }
  push('words', text.slice(at));
  return result;
}

const cutNote = (x, whole) => x.cut && el('p', {class: 'note'}, 'Only the beginning is shown. ', whole && el('button', {type: 'button', onclick: whole}, 'Save the whole text'));

function bubble(side, title, id, ...children) {
  return el('div', {class: `said ${side}`, id}, el('div', {class: 'note'}, title), children);
}

/** Prompts of a turn: the system's and long ones are folded. */
function prompts(turn) {
  return turn.prompt.map((p, k) => bubble(p.role === 'assistant' ? 'model' : 'asked', plain(p.role), `prompt${k}-${turn.turn}`,
    el('details', {id: `prompt${k}-${turn.turn}-text`, open: p.role !== 'system' && p.content.bytes < 1500},
      el('summary', {}, `${plain(p.content.text).trim().split('\n')[0].slice(0, 100)} `, el('span', {class: 'note'}, `${count(p.content.bytes)} bytes`)),
      el('pre', {tabindex: '0', 'aria-label': `Prompt: ${p.role}`}, plain(p.content.text)), cutNote(p.content))));
}

function completion(turn, whole) {
  const id = `completion-${turn.turn}`;
  if (!turn.completion.bytes) return null;
  const parts = pieces(turn.completion.text);
  return bubble('model', `${plain(turn.model) || 'model'}, ${count(turn.completion_tokens)} tokens`, id, parts.map((x, k) => {
    if (x.kind === 'thought')
      return el('details', {id: `${id}-thought${k}`}, el('summary', {}, 'Thoughts ', el('span', {class: 'note'}, `${count(x.text.length)} characters`)), el('pre', {tabindex: '0', 'aria-label': 'Thoughts'}, plain(x.text)));
    if (x.kind === 'code')
      return el('details', {id: `${id}-code${k}`}, el('summary', {}, 'Code ', el('span', {class: 'note'}, `${count(x.text.split('\n').length)} lines`)), code('Code', x.text, languageOf(x.text)));
    return x.text.length > 2000 ? el('details', {id: `${id}-words${k}`}, el('summary', {}, `${plain(x.text.slice(0, 80))} … `, el('span', {class: 'note'}, `${count(x.text.length)} characters`)), el('pre', {class: 'words'}, plain(x.text)))
      : el('p', {class: 'words'}, plain(x.text));
  }), cutNote(turn.completion, whole));
}

function feedback(turn, whole) {
  if (!turn.feedback.bytes) return null;
  return bubble('asked', 'feedback to the next turn', `feedback-${turn.turn}`, el('details', {id: `feedback-${turn.turn}-text`, open: turn.feedback.bytes < 1500},
    el('summary', {}, plain(turn.feedback.text).trim().split('\n')[0].slice(0, 100)), el('pre', {tabindex: '0', 'aria-label': 'Feedback'}, plain(turn.feedback.text)), cutNote(turn.feedback, whole)));
}

/** `whole(part)` saves a text that is shown in part. */
export function conversation(turn, whole) {
  return el('div', {class: 'conversation'}, prompts(turn), completion(turn, whole('completion')), feedback(turn, whole('feedback')));
}
