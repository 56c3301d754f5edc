// YAML on pages: highlighted, compared line by line, and the YAML tab of an object, to wrap, copy and download.

import { button, h, notify, replace } from './dom.js';
import { load, save } from './session.js';
import { hidden, isSecret, printYaml } from './yaml.js';

// A larger text is shown without highlighting.
const MAX_LINES = 10000;
const LINE = /^(\s*(?:- )*)(?:("(?:[^"\\]|\\.)*"|[^"\s].*?):(?= |$))?(.*)$/s;
const BLOCK = /^ ?[|>][-+]?$/;
// Lines that are shown around a difference.
const CONTEXT = 3;
// Longer texts are shown as replaced as a whole: a comparison would take too long.
const MAX_COMPARED = 4000;

function classOf(value) {
  const text = value.trim();
  if (/^-?\d[\d.]*(e[+-]?\d+)?$/i.test(text)) return 'number';
  return /^(true|false|null|\{\}|\[\])$/.test(text) ? 'literal' : 'string';
}

// The text as nodes: keys, and values by type. Lines of a block are all strings.
export function highlighted(text) {
  const lines = text.split('\n');
  if (lines.length > MAX_LINES) return [text];
  let block = -1;
  return lines.map((line) => {
    if (block >= 0 && (!line || /^ */.exec(line)[0].length >= block)) return h('span.string', null, `${line}\n`);
    const [, start, key, value] = LINE.exec(line);
    block = BLOCK.test(value) ? start.length + (key ? 1 : 0) : -1;
    return [start, key && [h('span.key-name', null, key), ':'], value && h(`span.${classOf(value)}`, { title: /^ hidden \(/.test(value) && 'Hidden. The code changes when the value changes.' }, value), '\n'];
  });
}

function withoutManagers(object) {
  const { managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

// A button that copies the text that `textOf` returns; `what` names it.
export function copyButton(textOf, what) {
  const copy = () => navigator.clipboard.writeText(textOf()).then(() => notify(`Copied ${what}.`), () => notify('The browser refused to copy.'));
  return button('Copy', copy, { id: `copy-${what}`, 'aria-label': `Copy ${what}` });
}

function download(name, text) {
  const href = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
  h('a', { href, download: name }).click();
  URL.revokeObjectURL(href);
}

function checkbox(id, text, checked, onchange) {
  return h('label.check', { for: id }, h('input', { type: 'checkbox', id, checked, onchange: (event) => onchange(event.target.checked) }), text);
}

// Shows the object of `view`, and each newer state of it.
export function yamlView(view, into, signal) {
  const pre = h('pre.code', { tabindex: '0', 'aria-label': 'YAML' });
  let text = '';
  const draw = () => {
    const object = withoutManagers(view.object);
    text = printYaml(view.showsValues ? object : hidden(object));
    const { scrollTop } = pre;
    replace(pre, highlighted(text));
    pre.scrollTop = scrollTop;
  };
  const wrap = (on) => pre.classList.toggle('wrap', on);
  wrap(load('wrap', false));
  replace(into, h('div.tools.above', null,
    isSecret(view.object) && checkbox('show-values', 'Show values', view.showsValues, (on) => { view.showsValues = on; draw(); }),
    checkbox('wrap', 'Wrap lines', load('wrap', false), (on) => { save('wrap', on); wrap(on); }),
    copyButton(() => text, 'YAML'), button('Download', () => download(`${view.kind.name}-${view.name}.yaml`, text), { id: 'download' })), pre);
  draw();
  view.changes.addEventListener('change', () => view.isThere && draw(), { signal });
}

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
  if (a.length * b.length > MAX_COMPARED * MAX_COMPARED / 4) return [...a.map((line) => ['-', line]), ...b.map((line) => ['+', line])];
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
