// The lines in which two texts differ, with context.

import { h } from './dom.js';

const CONTEXT = 3;
// Longer texts are shown as replaced as a whole: a comparison would take too long.
const MAX_LINES = 4000;

// Each line with ' ', '-' or '+'.
function compare(before, after) {
  const [a, b] = [before, after].map((text) => (text ? text.split('\n') : []));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (lines) => lines.map((line) => [' ', line]);
  return [...same(a.slice(0, start)), ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)), ...same(a.slice(a.length - end))];
}

function middle(a, b) {
  if (a.length * b.length > MAX_LINES * MAX_LINES / 4) return [...a.map((line) => ['-', line]), ...b.map((line) => ['+', line])];
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push([' ', a[i]]); i++; j++; }
    else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) out.push(['-', a[i++]]);
    else out.push(['+', b[j++]]);
  }
  return out;
}

export function showDiff(before, after, same = 'No changes.') {
  const lines = compare(before, after);
  const near = lines.map(() => false);
  lines.forEach(([sign], at) => {
    if (sign !== ' ') near.fill(true, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  if (!near.includes(true)) return h('p.quiet', null, same);
  const names = { '-': 'del', '+': 'ins', ' ': 'span' };
  return h('pre.diff', { 'aria-label': 'Differences', tabindex: '0' }, lines.map(([sign, line], at) => {
    if (near[at]) return h(names[sign], null, `${sign} ${line}\n`);
    return near[at - 1] || at === 0 ? h('span.gap', null, '…\n') : null;
  }));
}
