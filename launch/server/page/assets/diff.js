// The lines that differ between two texts: common beginning and end are skipped, the rest is the
// longest common sequence of lines, or simply all of both where that would take too long.

const MOST_CELLS = 4_000_000;

export function diff(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  let from = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) ++from;
  let endA = a.length, endB = b.length;
  while (endA > from && endB > from && a[endA - 1] === b[endB - 1]) { --endA; --endB; }
  const result = a.slice(0, from).map((line) => [' ', line]);
  result.push(...middle(a.slice(from, endA), b.slice(from, endB)));
  result.push(...a.slice(endA).map((line) => [' ', line]));
  return result;
}

function middle(a, b) {
  if (a.length * b.length > MOST_CELLS)
    return [...a.map((x) => ['-', x]), ...b.map((x) => ['+', x])];
  const width = b.length + 1;
  const best = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j)
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const result = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { result.push([' ', a[i]]); ++i; ++j; }
    else if (j === b.length || (i < a.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) result.push(['-', a[i++]]);
    else result.push(['+', b[j++]]);
  }
  return result;
}

/** Three lines around each change; longer stretches that are the same become one line. */
export function folded(lines, around = 3) {
  const near = new Set();
  lines.forEach(([sign], at) => {
    if (sign !== ' ') for (let k = at - around; k <= at + around; ++k) near.add(k);
  });
  const result = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (near.has(at)) {
      if (skipped) result.push(['…', `${skipped} lines are the same`]);
      skipped = 0;
      result.push(line);
    } else ++skipped;
  });
  if (skipped) result.push(['…', `${skipped} lines are the same`]);
  return result;
}
