// Pictures as SVG, each with a sentence for readers who cannot see it.

import {number, plain, seconds, times, turnWord} from './parts.js';

const SVG = 'http://www.w3.org/2000/svg';

function s(name, attributes = {}, ...children) {
  const x = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) x.setAttribute(key, value);
  for (const child of children.flat(Infinity)) x.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return x;
}

function picture(width, height, says, ...children) {
  return s('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': says}, children);
}

function figure(title, svg) {
  const x = document.createElement('figure'), caption = document.createElement('figcaption');
  caption.textContent = title;
  x.append(caption, svg);
  return x;
}

const span = (values) => {
  const low = Math.min(...values), high = Math.max(...values);
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
};

/** Mean with a band at each position of a turn in its episode; below, how many turns stand there. */
export function byPosition(title, steps, unit) {
  const [W, H, L, B] = [460, 204, 46, 38];
  if (!steps.length) return figure(title, picture(W, 40, `${title}: nothing yet`, s('text', {x: 8, y: 24}, 'nothing yet')));
  const [low, high] = span(steps.flatMap((x) => [x.low, x.high, x.mean]));
  const [first, last] = [steps[0].turn, steps[steps.length - 1].turn];
  const x = (turn) => L + 24 + (W - L - 56) * (first === last ? 0.5 : (turn - first) / (last - first));
  const y = (v) => 8 + (H - B - 8) * (1 - (v - low) / (high - low));
  const points = (key) => steps.map((p) => `${x(p.turn).toFixed(1)},${y(p[key]).toFixed(1)}`);
  const ticks = [low, (low + high) / 2, high].flatMap((v) => [
    s('line', {class: 'axis', x1: L, x2: W - 8, y1: y(v), y2: y(v)}),
    s('text', {x: L - 4, y: y(v) + 4, 'text-anchor': 'end'}, number(v))]);
  const every = Math.ceil(steps.length / 8); // labels that fit
  return figure(title, picture(W, H, `${title}: ` + steps.map((p) => `turn ${p.turn} ${number(p.mean)}${unit} of ${p.count} turns`).join(', '), ticks,
    s('polygon', {class: 'band', points: [...points('high'), ...points('low').reverse()].join(' ')}),
    s('polyline', {class: 'line', points: points('mean').join(' ')}),
    steps.map((p) => s('circle', {class: 'bar', cx: x(p.turn), cy: y(p.mean), r: 4},
      s('title', {}, `turn ${p.turn}: mean ${number(p.mean)}${unit}, a tenth below ${number(p.low)}, a tenth above ${number(p.high)}, ${p.count} turns`))),
    steps.filter((_, i) => i % every === 0).map((p) => [
      s('text', {x: x(p.turn), y: H - 20, 'text-anchor': 'middle'}, `turn ${p.turn}`),
      s('text', {x: x(p.turn), y: H - 6, 'text-anchor': 'middle'}, `n ${p.count}`)])));
}

/** Horizontal bars: [name, value, text]. */
export function bars(title, rows, most) {
  const [W, row, L] = [460, 26, 110];
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

/** A speedup with its interval on a line, turn by turn. */
export function intervals(turns) {
  const timed = turns.filter((t) => t.timing);
  if (!timed.length) return null;
  const [W, row, L] = [460, 24, 60];
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
  const [col, row] = [150, 46];
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
    const [x1, y1, x2, y2] = [up.depth * col + 126, up.lane * row + 24, n.depth * col + 8, n.lane * row + 24];
    return s('path', {class: n.of && up.of !== n.of ? 'edge fork' : 'edge', d: `M${x1} ${y1} C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}`});
  });
  const nodes = all.map((n) => {
    const t = n.turn, of = n.of ? `${n.of.run}, ` : '';
    return s('a', {href: address(t, n.of), 'aria-label': `${of}${turnWord(t.turn)}, ${t.transition}, ${t.category}`},
      s('rect', {class: n.of ? 'rest fork' : 'rest', x: n.depth * col + 8, y: n.lane * row + 6, width: 118, height: 36, rx: 5}),
      s('circle', {class: t.outcome === 'accepted' ? 'yes' : t.outcome === 'open' ? 'hollow' : 'no', cx: n.depth * col + 20, cy: n.lane * row + 24, r: 5}),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 21}, plain(n.of ? `${n.of.run} t${t.turn}` : `${turnWord(t.turn)}: ${t.transition}`).slice(0, 16)),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 35}, plain(t.category).slice(0, 15)));
  });
  const forks = branches.length ? `, ${branches.length} forks (dashed)` : '';
  return figure(`Lineage${forks}`, picture(W, H, `${all.length} candidates by parent${forks}`, edges, nodes));
}

/** An episode's candidates by parent, the best one and the active one marked; each is a link to the turn that made it. */
export function candidateGraph(candidates, address) {
  const [col, row] = [170, 46];
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
    const [x1, y1, x2, y2] = [up.depth * col + 146, up.lane * row + 24, n.depth * col + 8, n.lane * row + 24];
    return s('path', {class: 'edge', d: `M${x1} ${y1} C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}`});
  });
  const nodes = all.map((n) => {
    const c = n.of, marks = [c.best && 'best', c.active && 'active', c.dominated && 'dominated',
      c.choice && c.choice.status + ' by a person'].filter(Boolean).join(', ');
    const second = [c.status || 'not tried', c.speedup && times(c.speedup.estimate), c.patch_kind].filter(Boolean).join(' ');
    const right = ['eval_passed', 'benchmarked', 'profiled', 'promoted', 'dominated'].includes(c.status);
    return s('a', {href: address(c), 'aria-label': `${c.id}, ${c.role}, ${second}${marks && `, ${marks}`}`},
      s('rect', {class: c.active ? 'rest fork' : 'rest', x: n.depth * col + 8, y: n.lane * row + 6, width: 138, height: 36, rx: 5}),
      s('circle', {class: right ? 'yes' : c.status.endsWith('failed') ? 'no' : 'hollow', cx: n.depth * col + 20, cy: n.lane * row + 24, r: 5}),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 21}, plain(`${c.id} ${c.role}${c.best ? ' ★' : ''}`).slice(0, 18)),
      s('text', {x: n.depth * col + 30, y: n.lane * row + 35}, plain(second).slice(0, 19)), s('title', {}, plain(`${c.id}: ${second} ${marks} ${c.summary}`)));
  });
  return figure('Candidates (★ best, dashed: active)', picture(W, H, `${all.length} candidates by parent`, edges, nodes));
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

/** Tasks in the order of what B differs by: bars to the right are wins of B. */
export function difference(title, tasks) {
  if (!tasks.length) return null;
  const sorted = [...tasks].sort((p, q) => q.difference - p.difference);
  const rows = sorted.length > 24 ? [...sorted.slice(0, 12), ...sorted.slice(-12)] : sorted;
  const [W, row, L] = [560, 20, 200];
  const most = Math.max(1e-9, ...rows.map((t) => Math.abs(t.difference)));
  const middle = L + (W - L - 60) / 2, scale = (W - L - 60) / 2 / most;
  return figure(rows.length < sorted.length ? `${title}: the 12 best and the 12 worst of ${sorted.length}` : title,
    picture(W, rows.length * row + 8, `${title}: ` + rows.map((t) => `${t.task} ${number(t.difference, 3)}`).join(', '),
      s('line', {class: 'axis', x1: middle, x2: middle, y1: 0, y2: rows.length * row + 8}),
      rows.flatMap((t, i) => {
        const width = Math.abs(t.difference) * scale;
        return [s('text', {x: L - 6, y: i * row + 16, 'text-anchor': 'end'}, plain(t.task).slice(0, 32)),
          s('rect', {class: t.difference >= 0 ? 'yes' : 'no', x: t.difference >= 0 ? middle : middle - width, y: i * row + 5, width: Math.max(1, width), height: row - 7}),
          s('text', {x: W - 50, y: i * row + 16}, `${t.difference > 0 ? '+' : ''}${number(t.difference, 2)}`)];
      })));
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
