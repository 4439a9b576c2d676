// Code as people read it: coloured by highlight.js (vendored), with a button that copies it. What a model wrote goes
// into the page as text and nothing else: of the highlighter's answer only the classes of its spans are taken.

import {add, el, plain} from './parts.js';
import {lazy} from './patch.js';

const MOST_COLOURED = 60_000; // characters: longer texts are shown without colours

/** "cpp", "python", "llvm" or "json", by what a text looks like. */
export function languageOf(text) {
  if (/^\s*(import|from)\s+\w|^\s*(def|class)\s+\w+.*:\s*$|@triton\.jit/m.test(text)) return 'python';
  return /^\s*[{[]/.test(text) && /"\s*:/.test(text) && !/;\s*$/m.test(text) ? 'json' : 'cpp';
}

/** Nodes of a text with colours. */
function coloured(text, language) {
  const hljs = window.hljs;
  if (!hljs || text.length > MOST_COLOURED || !hljs.getLanguage(language)) return [document.createTextNode(text)];
  const made = new DOMParser().parseFromString(`<pre>${hljs.highlight(language, text, true).value}</pre>`, 'text/html').querySelector('pre');
  const copy = (from) => [...from.childNodes].map((x) => (x.nodeType === Node.TEXT_NODE ? document.createTextNode(x.data)
    : el('span', {class: [...x.classList].filter((c) => c.startsWith('hljs-')).join(' ')}, copy(x))));
  return copy(made);
}

function copyButton(text) {
  return el('button', {type: 'button', class: 'copy', onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not permitted';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }}, 'Copy');
}

/** A block of code. `key` says when it is another text. */
export function code(title, text, language = languageOf(text), more = {}) {
  const words = plain(text);
  const pre = lazy(el('pre', {class: 'code', tabindex: '0', 'aria-label': title, ...more}), `${language} ${words.length} ${hash(words)}`,
    () => add(document.createDocumentFragment(), coloured(words, language)));
  return el('div', {class: 'block'}, copyButton(text), pre);
}

/** Lines of a diff, coloured as code by their sign. */
export function diffBlock(title, lines, language) {
  const kinds = {'+': 'plus', '-': 'minus', '…': 'dim'};
  const words = lines.map(([sign, line]) => `${sign} ${line}`).join('\n');
  const pre = lazy(el('pre', {class: 'diff code', tabindex: '0', 'aria-label': title}), `${words.length} ${hash(words)}`, () => add(document.createDocumentFragment(),
    lines.map(([sign, line]) => el('span', {class: kinds[sign] ?? null}, `${sign} `, sign === '…' ? line : coloured(line, language)))));
  return el('div', {class: 'block'}, pre);
}

/** Of a text, to know it again: no guard against anything. */
function hash(text) {
  let x = 5381;
  for (let i = 0; i < text.length; ++i) x = (x * 33 + text.charCodeAt(i)) | 0;
  return x;
}
