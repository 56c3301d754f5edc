// The YAML tab of an object: highlighted, to wrap, copy and download. Values of a Secret are hidden at first.

import { button, h, replace } from './dom.js';
import { hidden, isSecret } from './secrets.js';
import { load, save } from './store.js';
import { printYaml } from './yaml.js';

// A larger text is shown without highlighting.
const MAX_LINES = 10000;
const LINE = /^(\s*(?:- )*)(?:("(?:[^"\\]|\\.)*"|[^"\s].*?):(?= |$))?(.*)$/s;
const BLOCK = /^ ?[|>][-+]?$/;

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
    return [start, key && [h('span.key-name', null, key), ':'], value && h(`span.${classOf(value)}`, null, value), '\n'];
  });
}

function withoutManagers(object) {
  const { managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

async function copy(text, into) {
  const label = into.textContent;
  await navigator.clipboard.writeText(text).then(() => { into.textContent = 'Copied'; }, () => { into.textContent = 'The browser refused'; });
  setTimeout(() => { into.textContent = label; }, 1500);
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
  const copying = button('Copy', () => copy(text, copying), { id: 'copy' });
  wrap(load('wrap', false));
  replace(into, h('div.tools.above', null,
    isSecret(view.object) && checkbox('show-values', 'Show values', view.showsValues, (on) => { view.showsValues = on; draw(); }),
    checkbox('wrap', 'Wrap lines', load('wrap', false), (on) => { save('wrap', on); wrap(on); }),
    copying, button('Download', () => download(`${view.kind.name}-${view.name}.yaml`, text), { id: 'download' })), pre);
  draw();
  view.changes.addEventListener('change', () => view.isThere && draw(), { signal });
}
