// Pictures as SVG, each with a sentence for readers who cannot see it.

import {el, number, plain, seconds, times, turnWord} from './parts.js';

const SVG = 'http://www.w3.org/2000/svg';

export function s(name, attributes = {}, ...children) {
  const x = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) x.setAttribute(key, value);
  for (const child of children.flat(Infinity)) if (child !== false) x.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return x;
}

export function picture(width, height, says, ...children) {
  return s('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': says}, children);
}

/** One that is not stretched: boxes with words keep their size, and the figure scrolls. */
export function natural(width, ...more) {
  const x = picture(width, ...more);
  x.setAttribute('class', 'natural');
  return x;
}

/** `names` of lines: [number of its colour, name]. */
export function figure(title, svg, names = []) {
  return el('figure', {}, el('figcaption', {}, title), svg,
    names.length > 0 && el('p', {class: 'note legend'}, names.map(([i, name]) => [el('span', {class: `key key${i}`}, '●'), ` ${plain(name)}  `])));
}

export const span = (values) => {
  const low = Math.min(...values), high = Math.max(...values);
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
};

/**
 * Means by the position of a turn in its episode, one line a run: [name, steps]. The first has a band from the tenth to the
 * ninetieth of a hundred. Pointing at a position shows the values of all.
 */
export function byPosition(title, series, unit) {
  const [W, H, L, B] = [560, 236, 46, 40];
  const some = series.filter(([, steps]) => steps.length > 0);
  if (!some.length) return figure(title, picture(W, 40, `${title}: nothing yet`, s('text', {x: 8, y: 24}, 'nothing yet')));
  const all = some.flatMap(([, steps]) => steps);
  const [low, high] = span(some.flatMap(([, steps], i) => steps.flatMap((x) => (i === 0 ? [x.low, x.high, x.mean] : [x.mean]))));
  const [first, last] = span(all.map((x) => x.turn));
  const x = (turn) => L + 24 + (W - L - 56) * (turn - first) / (last - first);
  const y = (v) => 8 + (H - B - 8) * (1 - (v - low) / (high - low));
  const points = (steps, key) => steps.map((p) => `${x(p.turn).toFixed(1)},${y(p[key]).toFixed(1)}`);
  const ticks = [low, (low + high) / 2, high].flatMap((v) => [
    s('line', {class: 'axis', x1: L, x2: W - 8, y1: y(v), y2: y(v)}),
    s('text', {x: L - 4, y: y(v) + 4, 'text-anchor': 'end'}, number(v))]);
  const turns = [...new Set(all.map((p) => p.turn))].sort((a, b) => a - b);
  const every = Math.ceil(turns.length / 8); // labels that fit
  const words = (p) => `mean ${number(p.mean)}${unit}, a tenth below ${number(p.low)}, a tenth above ${number(p.high)}, ${p.count} turns`;
  const lead = some[0][1];
  const width = (W - L - 56) / (last - first);
  const said = (turn) => some.flatMap(([name, steps]) => steps.filter((p) => p.turn === turn).map((p) => `${name}: ${words(p)}`)).join('\n');
  const svg = picture(W, H, `${title}: ` + some.map(([name, steps]) => `${name}: ` + steps.map((p) => `${turnWord(p.turn)} ${number(p.mean)}${unit} of ${p.count} turns`).join(', ')).join('; '), ticks,
    s('polygon', {class: 'band', points: [...points(lead, 'high'), ...points(lead, 'low').reverse()].join(' ')}),
    some.map(([, steps], i) => s('polyline', {class: `line line${i}`, points: points(steps, 'mean').join(' ')})),
    some.map(([, steps], i) => steps.map((p) => s('circle', {class: `bar bar${i}`, cx: x(p.turn), cy: y(p.mean), r: 4}))),
    turns.filter((_, i) => i % every === 0).map((turn) => [
      s('text', {x: x(turn), y: H - 22, 'text-anchor': 'middle'}, turnWord(turn)),
      s('text', {x: x(turn), y: H - 8, 'text-anchor': 'middle'}, `n ${lead.find((p) => p.turn === turn)?.count ?? 0}`)]),
    turns.map((turn) => s('g', {class: 'hover'}, s('line', {class: 'mark', x1: x(turn), x2: x(turn), y1: 8, y2: H - B}),
      s('rect', {x: x(turn) - width / 2, y: 0, width, height: H - 16, 'fill-opacity': 0}, s('title', {}, `${turnWord(turn)}\n${said(turn)}`)))));
  return figure(title, svg, some.length > 1 ? some.map(([name], i) => [i, name]) : []);
}

/** Horizontal bars: [name, value, text]. */
export function bars(title, rows, most) {
  const [W, row, L] = [560, 26, 130];
  const H = rows.length * row + 6;
  const top = most || Math.max(1e-9, ...rows.map((x) => x[1]));
  return figure(title, picture(W, Math.max(H, 30), `${title}: ` + rows.map(([n, , t]) => `${n} ${t}`).join(', '),
    rows.flatMap(([name, value, text], i) => [
      s('text', {x: L - 6, y: i * row + 19, 'text-anchor': 'end'}, plain(name)),
      s('rect', {class: 'rest', x: L, y: i * row + 6, width: W - L - 96, height: row - 8}),
      s('rect', {class: 'bar', x: L, y: i * row + 6, width: Math.max(0, (W - L - 96) * value / top), height: row - 8}),
      s('text', {x: W - 90, y: i * row + 19}, text)])));
}

/** Times of candidate and baseline, the bound of the machine, and by kind of contents. */
export function timesOf(timing) {
  const rows = [['baseline', timing.reference_ms], ['candidate', timing.candidate_ms],
    ...timing.kinds.flatMap((k) => [[`${k.name}: baseline`, k.reference_ms], [`${k.name}: candidate`, k.candidate_ms]])];
  return bars(`Times of ${timing.samples} checked calls, medians`, rows.map(([n, v]) => [n, v, `${number(v, 4)} ms`]));
}

/**
 * The measurement of a turn: each pair of candidate and baseline as a dot, in order from left to right, the interval of
 * the speedup as a band, its estimate as a line, and the baseline at 1x.
 */
export function ratios(timing) {
  const all = timing.pairs.filter((p) => p[0] > 0 && p[1] > 0).map((p) => p[1] / p[0]);
  if (!all.length) return null;
  const {estimate, low, high} = timing.speedup;
  const sorted = [...all].sort((a, b) => a - b);
  const rank = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [W, H, L] = [560, 220, 46]; // outliers are drawn at the edge
  const [bottom, top] = span([1, low, high, rank(0.02), rank(0.98)]);
  const y = (v) => 10 + (H - 40) * (1 - (Math.min(top, Math.max(bottom, v)) - bottom) / (top - bottom));
  const x = (i) => L + 8 + (W - L - 24) * (all.length === 1 ? 0.5 : i / (all.length - 1));
  const words = `${all.length} pairs; speedup ${number(estimate, 3)} [${number(low, 3)}, ${number(high, 3)}]`;
  return figure(`Baseline / candidate, pair by pair: ${words}`, picture(W, H, words,
    [bottom, top].map((v) => s('text', {x: L - 4, y: y(v) + 4, 'text-anchor': 'end'}, number(v))),
    s('rect', {class: 'band', x: L, y: y(high), width: W - L - 8, height: Math.max(1, y(low) - y(high))}, s('title', {}, `95 % interval: ${number(low, 3)} to ${number(high, 3)}`)),
    s('line', {class: 'line', x1: L, x2: W - 8, y1: y(estimate), y2: y(estimate)}),
    s('line', {class: 'mark', x1: L, x2: W - 8, y1: y(1), y2: y(1)}), s('text', {x: W - 10, y: y(1) - 4, 'text-anchor': 'end'}, '1x (baseline)'),
    all.map((v, i) => s('circle', {class: 'bar dot', cx: x(i), cy: y(v), r: 2.6}, s('title', {}, `pair ${i + 1}: ${number(timing.pairs[i][1], 5)} ms / ${number(timing.pairs[i][0], 5)} ms = ${number(v, 3)}`))),
    s('text', {x: L, y: H - 8}, `first pair`), s('text', {x: W - 8, y: H - 8, 'text-anchor': 'end'}, timing.samples > all.length ? `last of ${timing.samples}, thinned to ${all.length}` : 'last pair')));
}

/** A speedup with its interval on a line, turn by turn. */
export function intervals(turns) {
  const timed = turns.filter((t) => t.timing);
  if (!timed.length) return null;
  const [W, row, L] = [560, 24, 60];
  const H = timed.length * row + 26;
  const [low, high] = span([1, ...timed.flatMap((t) => [t.timing.speedup.low, t.timing.speedup.high])]);
  const x = (v) => L + (W - L - 76) * (v - low) / (high - low);
  return figure('Speedup and its 95 % interval, turn by turn', picture(W, H,
    timed.map((t) => `${turnWord(t.turn)}: ${number(t.timing.speedup.estimate)} from ${number(t.timing.speedup.low)} to ${number(t.timing.speedup.high)}`).join('; '),
    s('line', {class: 'mark', x1: x(1), x2: x(1), y1: 0, y2: H - 20}), s('text', {x: x(1), y: H - 6, 'text-anchor': 'middle'}, '1x (baseline)'),
    timed.flatMap((t, i) => {
      const y = i * row + 14, v = t.timing.speedup;
      return [s('text', {x: L - 8, y: y + 4, 'text-anchor': 'end'}, turnWord(t.turn)),
        s('line', {class: 'line', x1: x(v.low), x2: x(v.high), y1: y, y2: y}),
        s('circle', {class: 'bar', cx: x(v.estimate), cy: y, r: 4}),
        s('text', {x: W - 70, y: y + 4}, times(v.estimate))];
    })));
}

/**
 * Candidates by parent, those of forks too; each is a link to its turn. A branch is {run, episode, turns,
 * branches}, and its first turn's parent is a turn of its origin.
 */
export function lineage(turns, branches, address) {
  const [col, row] = [196, 46];
  const place = new Map();
  const depths = [];
  const add = (t, of) => {
    const up = place.get(t.parent);
    const depth = up ? up.depth + 1 : 0;
    depths[depth] = Math.max((depths[depth] ?? -1) + 1, up?.lane ?? 0);
    place.set(t.id, {depth, lane: depths[depth], turn: t, of});
  };
  const addBranch = (b) => {
    for (const t of b.turns) add(t, b);
    b.branches?.forEach(addBranch);
  };
  for (const t of turns) add(t, null);
  branches.forEach(addBranch);
  const all = [...place.values()];
  const W = Math.max(1, depths.length) * col + 10, H = (Math.max(0, ...depths) + 1) * row + 10;
  const edges = all.filter((n) => place.get(n.turn.parent)).map((n) => {
    const up = place.get(n.turn.parent);
    const [x1, y1, x2, y2] = [up.depth * col + 172, up.lane * row + 24, n.depth * col + 8, n.lane * row + 24];
    return s('path', {class: n.of && up.of !== n.of ? 'edge fork' : 'edge', d: `M${x1} ${y1} C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}`});
  });
  const nodes = all.map((n) => {
    const t = n.turn, of = n.of ? `${n.of.run}, ` : '';
    return s('a', {href: address(t, n.of), 'aria-label': `${of}${turnWord(t.turn)}, ${t.transition}, ${t.category}`},
      s('rect', {class: n.of ? 'rest fork' : 'rest', x: n.depth * col + 8, y: n.lane * row + 6, width: 164, height: 36, rx: 5}),
      s('circle', {class: t.outcome === 'accepted' ? 'yes' : t.outcome === 'open' ? 'hollow' : 'no', cx: n.depth * col + 20, cy: n.lane * row + 24, r: 5}),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 21}, plain(n.of ? `${n.of.run} t${t.turn}` : `${turnWord(t.turn)}: ${t.transition}`).slice(0, 22)),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 35}, plain(t.category).slice(0, 22)));
  });
  const forks = branches.length ? `, ${branches.length} forks (dashed)` : '';
  return figure(`Lineage${forks}`, natural(W, H, `${all.length} candidates by parent${forks}`, edges, nodes));
}

/** An episode's candidates by parent, the best one and the active one marked; each is a link to the turn that made it. */
export function candidateGraph(candidates, address) {
  const [col, row] = [216, 46];
  const place = new Map(), lanes = [];
  for (const c of candidates) {
    const depth = c.depth, up = place.get(c.parent);
    lanes[depth] = Math.max((lanes[depth] ?? -1) + 1, up?.lane ?? 0);
    place.set(c.id, {depth, lane: lanes[depth], of: c});
  }
  const all = [...place.values()];
  const W = (Math.max(0, ...all.map((n) => n.depth)) + 1) * col + 10, H = (Math.max(0, ...all.map((n) => n.lane)) + 1) * row + 10;
  const edges = all.filter((n) => place.has(n.of.parent)).map((n) => {
    const up = place.get(n.of.parent);
    const [x1, y1, x2, y2] = [up.depth * col + 192, up.lane * row + 24, n.depth * col + 8, n.lane * row + 24];
    return s('path', {class: 'edge', d: `M${x1} ${y1} C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}`});
  });
  const nodes = all.map((n) => {
    const c = n.of, marks = [c.best && 'best', c.active && 'active', c.dominated && 'dominated',
      c.choice && c.choice.status + ' by a person'].filter(Boolean).join(', ');
    const second = [c.status || 'not tried', c.speedup && times(c.speedup.estimate), c.patch_kind].filter(Boolean).join(' ');
    const right = ['eval_passed', 'benchmarked', 'profiled', 'promoted', 'dominated'].includes(c.status);
    return s('a', {href: address(c), 'aria-label': `${c.id}, ${c.role}, ${second}${marks && `, ${marks}`}`},
      s('rect', {class: c.active ? 'rest fork' : 'rest', x: n.depth * col + 8, y: n.lane * row + 6, width: 184, height: 36, rx: 5}),
      s('circle', {class: right ? 'yes' : c.status.endsWith('failed') ? 'no' : 'hollow', cx: n.depth * col + 20, cy: n.lane * row + 24, r: 5}),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 21}, plain(`${c.id} ${c.role}${c.best ? ' ★' : ''}`).slice(0, 24)),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 35}, plain(second).slice(0, 25)), s('title', {}, plain(`${c.id}: ${second} ${marks} ${c.summary}`)));
  });
  return figure('Candidates (★ best, dashed: active)', natural(W, H, `${all.length} candidates by parent`, edges, nodes));
}

/** One dot a member on the scale of its best reward; hollow ones have none. */
export function strip(group, members, low, high, address) {
  const [W, H] = [190, 22];
  const x = (v) => 8 + (W - 16) * (high > low ? (v - low) / (high - low) : 0.5);
  return picture(W, H, `${group}: best rewards ${members.map((m) => number(m.best_reward)).join(', ')}`,
    s('line', {class: 'axis', x1: 4, x2: W - 4, y1: H / 2, y2: H / 2}),
    members.map((m) => s('a', {href: address(m.id), 'aria-label': `${m.id}: ${m.outcome}, best reward ${number(m.best_reward)}`},
      m.best_reward === null ? s('circle', {class: 'hollow', cx: 8, cy: H / 2, r: 4}, s('title', {}, `${m.id}: ${m.outcome}`))
        : s('circle', {class: m.outcome === 'accepted' ? 'yes dot' : 'no dot', cx: x(m.best_reward), cy: H / 2, r: 4.5},
          s('title', {}, `${m.id}: ${number(m.best_reward)}, ${m.outcome}`)))));
}

/** Two values of each task, joined: A hollow, B full, in the order of what B differs by. */
export function pairsOf(title, tasks, address) {
  const both = tasks.filter((t) => t.a !== null && t.b !== null);
  if (!both.length) return null;
  const sorted = [...both].sort((p, q) => (q.b - q.a) - (p.b - p.a));
  const rows = sorted.length > 30 ? [...sorted.slice(0, 15), ...sorted.slice(-15)] : sorted;
  const [W, row, L] = [560, 20, 210];
  const [low, high] = span(rows.flatMap((t) => [t.a, t.b]));
  const x = (v) => L + (W - L - 70) * (v - low) / (high - low);
  return figure(rows.length < sorted.length ? `${title}: the 15 best and the 15 worst of ${sorted.length}` : title,
    picture(W, rows.length * row + 26, `${title}: ` + rows.map((t) => `${t.task} ${number(t.a, 3)} to ${number(t.b, 3)}`).join(', '),
      rows.map((t, i) => {
        const y = i * row + 12, words = `${t.task}: A ${number(t.a, 3)}, B ${number(t.b, 3)}`;
        return s('a', {href: address(t.task), 'aria-label': words}, s('title', {}, words),
          s('text', {x: L - 8, y: y + 4, 'text-anchor': 'end'}, plain(t.task).slice(-34)), s('line', {class: 'axis', x1: L, x2: W - 62, y1: y, y2: y}),
          s('line', {class: t.b >= t.a ? 'up' : 'down', x1: x(t.a), x2: x(t.b), y1: y, y2: y}), s('circle', {class: 'hollow', cx: x(t.a), cy: y, r: 4}),
          s('circle', {class: t.b >= t.a ? 'yes' : 'no', cx: x(t.b), cy: y, r: 4.5}), s('text', {x: W - 54, y: y + 4}, `${t.b > t.a ? '+' : ''}${number(t.b - t.a, 2)}`));
      }), s('text', {x: L, y: rows.length * row + 20}, number(low)), s('text', {x: W - 62, y: rows.length * row + 20, 'text-anchor': 'end'}, number(high))));
}

/** Which turn held which slot when; what overlaps on one device gets lanes of its own. */
export function lanes(rows, address) {
  if (!rows.length) return null;
  const begin = Math.min(...rows.map((x) => x.begin)), end = Math.max(...rows.map((x) => x.end));
  const devices = new Map();
  for (const x of [...rows].sort((a, b) => a.begin - b.begin)) {
    if (!devices.has(x.lane)) devices.set(x.lane, []);
    const tracks = devices.get(x.lane);
    let track = tracks.find((t) => t[t.length - 1].end <= x.begin + 1e-3);
    if (!track) tracks.push(track = []);
    track.push(x);
  }
  const [W, row, top] = [920, 18, 20];
  const parts = [];
  let y = 4;
  for (const [device, tracks] of devices) {
    parts.push(s('text', {x: 4, y: y + 12}, plain(device)));
    y += top;
    for (const track of tracks) {
      parts.push(s('line', {class: 'axis', x1: 4, x2: W - 4, y1: y + row - 2, y2: y + row - 2}));
      for (const x of track) {
        const left = 4 + (W - 8) * (x.begin - begin) / Math.max(1e-9, end - begin);
        const width = Math.max(1.5, (W - 8) * (x.end - x.begin) / Math.max(1e-9, end - begin));
        const words = `${x.turn}: ${seconds(x.end - x.begin)} in the slot, waited ${seconds(x.waited_seconds)}, ${x.category}`;
        parts.push(s('a', {href: address(x), 'aria-label': words},
          s('rect', {class: x.category === 'success' ? 'yes' : 'no', x: left, y, width, height: row - 4}, s('title', {}, words))));
      }
      y += row;
    }
    y += 8;
  }
  return figure(`Slots over ${seconds(end - begin)}: green was right and timed, red was not`,
    picture(W, y + 4, `${rows.length} evaluations on ${devices.size} devices`, parts));
}
