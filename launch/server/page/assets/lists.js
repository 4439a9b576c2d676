// Long lists: the filter above, the order of columns, and the pages below.

import {isStored} from './api.js';
import {count, el} from './parts.js';

export const PAGE = 100;

export function filterBar(page, example, keys) {
  if (isStored) return null; // conditions are a server's work
  const field = el('input', {id: 'where', name: 'where', value: page.query.where ?? '', spellcheck: 'false', autocomplete: 'off',
    placeholder: example, 'aria-describedby': 'keys'});
  return el('form', {class: 'bar', role: 'search', onsubmit: (event) => { event.preventDefault(); page.go({where: event.target.elements.where.value, offset: ''}); }},
    el('label', {}, 'Filter', field), el('button', {}, 'Apply'),
    page.query.where && el('button', {type: 'button', onclick: () => page.go({where: '', offset: ''})}, 'Show all'),
    el('span', {class: 'note', id: 'keys'}, `Keys: ${keys}. Signs: = != < > ~ and or not.`));
}

export const sorting = (page) => ({now: page.query.sort ?? '', set: (key) => page.go({sort: key, offset: ''})});

export function pager(page, x, size = PAGE) {
  const at = x.offset, end = Math.min(x.matching, at + size);
  if (x.matching <= size && at === 0) return el('p', {class: 'note', id: 'matching'}, `${count(x.matching)} shown`);
  return el('p', {}, el('button', {type: 'button', disabled: at === 0, onclick: () => page.go({offset: Math.max(0, at - size) || ''})}, 'Earlier'), ' ',
    el('span', {id: 'matching'}, `${at + 1} to ${end} of ${count(x.matching)}`), ' ',
    el('button', {type: 'button', disabled: end >= x.matching, onclick: () => page.go({offset: at + size})}, 'Later'));
}
