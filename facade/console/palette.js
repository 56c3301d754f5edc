// A dialog with a text field and a list of matching choices: namespaces, kinds, objects.

import { dialog, h, replace } from './dom.js';

const MAX_SHOWN = 50;

// Items of which a text contains `wanted`; exact matches first, then those that start with it.
export function ranked(items, wanted, textsOf) {
  const text = wanted.toLowerCase();
  if (!text) return items;
  const rank = (item) => Math.min(...textsOf(item).map((one) => {
    const at = one.toLowerCase().indexOf(text);
    return at < 0 ? 9 : at > 0 ? 2 : one.length === text.length ? 0 : 1;
  }));
  return items.map((item) => [rank(item), item]).filter(([of]) => of < 9).sort(([a], [b]) => a - b).map(([, item]) => item);
}

// `choices(text)` returns { label, detail, choose }; `start(redraw, signal)` loads what it needs.
export function openPalette(options) {
  const palette = new Palette(options);
  palette.draw();
  options.start?.(() => palette.draw(), palette.leaving.signal);
}

class Palette {
  constructor({ label, placeholder, choices }) {
    Object.assign(this, { choices, shown: [], at: 0, leaving: new AbortController() });
    this.note = h('p.quiet', { 'aria-live': 'polite' });
    this.list = h('ul.choices', { id: 'choices', role: 'listbox', 'aria-label': label });
    this.input = h('input', { id: 'palette', role: 'combobox', 'aria-label': label, 'aria-controls': 'choices', 'aria-expanded': 'true', placeholder, spellcheck: 'false', autocomplete: 'off', autofocus: true,
      oninput: () => { this.at = 0; this.draw(); }, onkeydown: (event) => this.key(event) });
    this.node = dialog('dialog.palette', label, this.input, this.list, this.note);
    this.node.addEventListener('close', () => this.leaving.abort());
    this.node.addEventListener('click', (event) => { if (event.target === this.node) this.node.close(); });
  }

  draw() {
    const found = this.choices(this.input.value);
    this.shown = found.slice(0, MAX_SHOWN);
    this.at = Math.max(0, Math.min(this.at, this.shown.length - 1));
    replace(this.list, this.shown.map((one, at) => h('li', { id: `choice-${at}`, role: 'option', 'aria-selected': String(at === this.at), onclick: () => this.pick(at) },
      h('span', null, one.label), h('span.quiet', null, one.detail))));
    this.note.textContent = found.length > MAX_SHOWN ? `The first ${MAX_SHOWN} of ${found.length}.` : found.note ?? (found.length ? '' : 'No match.');
    this.input.setAttribute('aria-activedescendant', `choice-${this.at}`);
    this.list.children[this.at]?.scrollIntoView({ block: 'nearest' });
  }

  pick(at) {
    if (!this.shown[at]) return;
    this.node.close();
    this.shown[at].choose();
  }

  key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by && event.key !== 'Enter') return;
    event.preventDefault();
    if (!by) return this.pick(this.at);
    this.at += by;
    this.draw();
  }
}
