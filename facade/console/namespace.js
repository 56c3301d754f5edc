// The namespace that all pages show: chosen in the header, remembered, and empty for all namespaces.

import { h, replace } from './dom.js';
import { getJson, METADATA_LIST } from './http.js';
import { openPalette, ranked } from './palette.js';
import { session } from './session.js';
import { load, save } from './store.js';

const MAX_RECENT = 8;
// Notifies of another choice.
export const changes = new EventTarget();

export function chosen() {
  return load('namespace', '');
}

// Stores the choice without showing the page again.
export function adopt(name) {
  if (name === chosen()) return false;
  save('namespace', name);
  if (name) save('recent-namespaces', [name, ...load('recent-namespaces', []).filter((one) => one !== name)].slice(0, MAX_RECENT));
  replace(document.getElementById('namespace'), label());
  return true;
}

function choose(name) {
  if (adopt(name)) changes.dispatchEvent(new Event('change'));
}

export function label() {
  return ['Namespace: ', h('b', null, chosen() || 'all'), ' ▾'];
}

// Namespaces that are likely to be wanted by a user who may not list all of them.
function likely() {
  const [, own] = /^system:serviceaccount:([^:]+):/.exec(session.user?.username ?? '') ?? [];
  return [...new Set([...load('recent-namespaces', []), own].filter(Boolean))];
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

// Replaces a refusal for all namespaces: asks which one to show.
export function askForNamespace(what) {
  const input = h('input', { id: 'choose-namespace', 'aria-label': 'Namespace', value: likely()[0] ?? '', placeholder: 'for example team-a', required: true, spellcheck: 'false', autocomplete: 'off' });
  const submit = (event) => {
    event.preventDefault();
    choose(input.value.trim());
  };
  return h('form.panel.offer', { onsubmit: submit }, h('h2', null, 'Choose a namespace'),
    h('p', null, `You have no permission to list ${what} in all namespaces. Enter a namespace that you have access to; the console remembers it.`),
    h('div.fields', null, input, h('button.primary', { type: 'submit' }, 'Show')));
}
