// The latest turns, in the page as soon as their events come: what else is shown is asked for anew, and
// that takes its time.

import {el, number, plain, state} from './parts.js';

const MOST = 5;
const box = document.getElementById('latest');
const list = box.querySelector('ol');
let waiting = [], drawing = false;

/** Thousands come in a second at times: lines that come too fast to be read are never drawn. */
export function tell(turn, address) {
  waiting.push([turn, address]);
  if (waiting.length > MOST) waiting.shift();
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    for (const [x, to] of waiting.splice(0)) list.prepend(row(x, to));
    while (list.children.length > MOST) list.lastChild.remove();
    box.hidden = list.children.length === 0;
  });
}

export function forget() {
  waiting = [];
  list.replaceChildren();
  box.hidden = true;
}

function row(x, address) {
  return el('li', {class: 'fresh', 'data-at': x.timestamp},
    el('a', {href: address(['runs', x.run, 'episodes', x.episode], {turn: x.turn})}, plain(`${x.run}/${x.episode}.t${x.turn}`)), ' ',
    state(x.category), x.reward === null ? '' : ` reward ${number(x.reward)}`);
}
