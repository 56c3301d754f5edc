// Dialogs with a text field and a list of matching choices: namespaces, kinds by name or short name, objects by name.

import { dialog, h, replace } from './dom.js';
import { fullName, listLink, objectLink, pathOf } from './discovery.js';
import { forEach, getJson, METADATA_LIST } from './http.js';
import { choose, chosen, inNamespace, likely } from './namespace.js';
import { listable } from './rights.js';
import { go } from './router.js';

const MAX_SHOWN = 50;
// Objects of a kind whose names are searched.
const MAX_OF_KIND = 500;
// Names of these objects are generated and never searched for.
const SKIPPED = ['events', 'events.events.k8s.io'];

// Items of which a text contains `wanted`; exact matches first, then those that start with it.
function ranked(items, wanted, textsOf) {
  const text = wanted.toLowerCase();
  if (!text) return items;
  const rank = (item) => Math.min(...textsOf(item).map((one) => {
    const at = one.toLowerCase().indexOf(text);
    return at < 0 ? 9 : at > 0 ? 2 : one.length === text.length ? 0 : 1;
  }));
  return items.map((item) => [rank(item), item]).filter(([of]) => of < 9).sort(([a], [b]) => a - b).map(([, item]) => item);
}

// `choices(text)` returns { label, detail, choose }; `start(redraw, signal)` loads what it needs.
function openPalette(options) {
  const palette = new Palette(options);
  palette.draw();
  options.start?.(() => palette.draw(), palette.leaving.signal);
}

class Palette {
  constructor({ label, placeholder, text = '', choices }) {
    Object.assign(this, { choices, shown: [], at: 0, leaving: new AbortController() });
    this.note = h('p.quiet', { 'aria-live': 'polite' });
    this.list = h('ul.choices', { id: 'choices', role: 'listbox', 'aria-label': label });
    this.input = h('input', { id: 'palette', role: 'combobox', 'aria-label': label, 'aria-controls': 'choices', 'aria-expanded': 'true', placeholder, value: text, spellcheck: 'false', autocomplete: 'off', autofocus: true,
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

async function names(signal) {
  const { items } = await getJson('/api/v1/namespaces?limit=500', { accept: METADATA_LIST, signal });
  return items.map(({ metadata }) => metadata.name);
}

export function openNamespaces() {
  let known = likely();
  openPalette({
    label: 'Namespace', placeholder: 'Type or choose a namespace',
    start: async (redraw, signal) => {
      known = await names(signal).catch(() => known);
      redraw();
    },
    choices: (text) => {
      const typed = text.trim();
      const found = ranked(known, typed, (name) => [name]).map((name) => ({ label: name, detail: name === chosen() ? 'chosen' : '', choose: () => choose(name) }));
      const all = { label: 'All namespaces', detail: chosen() ? '' : 'chosen', choose: () => choose('') };
      if (typed && !known.includes(typed)) found.push({ label: typed, detail: 'as typed', choose: () => choose(typed) });
      return typed ? found : [all, ...found];
    },
  });
}

const kindTexts = (kind) => [kind.kind, kind.name, fullName(kind), ...kind.shortNames];

function kindChoice(kind) {
  return { label: kind.kind, detail: [fullName(kind), ...kind.shortNames].join(', '), choose: () => go(listLink(kind)) };
}

export function searchKinds() {
  let kinds = [];
  openPalette({
    label: 'Go to a kind', placeholder: 'Kind, resource or short name',
    start: async (redraw) => { kinds = await listable(chosen()); redraw(); },
    choices: (text) => ranked(kinds, text.trim(), kindTexts).map(kindChoice),
  });
}

export function searchObjects(namespace = chosen(), text = '') {
  const names = new Names(namespace);
  openPalette({ label: `Search objects ${names.where}`, placeholder: 'Part of a name', text, start: (redraw, signal) => names.load(redraw, signal), choices: (typed) => names.matching(typed.trim()) });
}

// The names of all objects in a namespace, which arrive kind by kind.
class Names {
  constructor(namespace) {
    Object.assign(this, { namespace, where: inNamespace(namespace) });
  }

  found = [];
  kinds = [];
  isLoading = true;
  // The number of kinds with more objects than are searched.
  cut = 0;
  // True if kinds could not be listed.
  failed = false;

  async load(redraw, signal) {
    this.kinds = await listable(this.namespace).catch(() => { this.failed = true; return []; });
    await forEach(this.kinds.filter((kind) => !SKIPPED.includes(fullName(kind))), signal, async (kind) => {
      const { items = [], metadata } = await getJson(`${pathOf(kind, this.namespace)}?limit=${MAX_OF_KIND}`, { accept: METADATA_LIST, signal }).catch(() => { this.failed = true; return {}; });
      for (const { metadata: { name, namespace } } of items) this.found.push({ kind, name, namespace });
      if (metadata?.continue) this.cut++;
      if (!signal.aborted) redraw();
    });
    this.isLoading = false;
    if (!signal.aborted) redraw();
  }

  matching(text) {
    const { namespace, where } = this;
    const all = text ? [...ranked(this.kinds, text, kindTexts).slice(0, 3).map(kindChoice), ...ranked(this.found, text, ({ name }) => [name]).map(objectChoice)] : [];
    if (this.isLoading) all.note = `Reading names ${where} …`;
    else if (!text) all.note = `Type a part of a name. ${this.found.length} objects ${where} are searched.`;
    else if (!all.length && namespace) {
      all.push({ label: 'Search all namespaces', choose: () => searchObjects('', text) });
      all.note = `No match ${where}.`;
    } else if (this.failed) all.note = 'Some kinds could not be searched.';
    else if (this.cut) all.note = `Of ${this.cut} kinds only the first ${MAX_OF_KIND} objects were searched: choose a namespace to search all.`;
    return all;
  }
}

function objectChoice({ kind, name, namespace }) {
  return { label: name, detail: [kind.kind, namespace].filter(Boolean).join(' · '), choose: () => go(objectLink(kind, namespace, name)) };
}
