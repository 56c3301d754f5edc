// The namespace that all pages show: chosen in the header, remembered, and empty for all namespaces.

import { h, replace } from './dom.js';
import { session, load, save } from './session.js';

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

export function choose(name) {
  if (adopt(name)) changes.dispatchEvent(new Event('change'));
}

export function inNamespace(name) {
  return name ? `in namespace ${name}` : 'in all namespaces';
}

export function label() {
  return ['Namespace: ', h('b', null, chosen() || 'all'), ' ▾'];
}

// Namespaces that are likely to be wanted by a user who may not list all of them.
export function likely() {
  const [, own] = /^system:serviceaccount:([^:]+):/.exec(session.user?.username ?? '') ?? [];
  return [...new Set([...load('recent-namespaces', []), own].filter(Boolean))];
}

// Replaces a refusal for all namespaces: asks which one to show.
export function askForNamespace(what) {
  const input = h('input', { id: 'choose-namespace', 'aria-label': 'Namespace', value: likely()[0] ?? '', placeholder: 'for example team-a', required: true, spellcheck: 'false', autocomplete: 'off' });
  const submit = (event) => {
    event.preventDefault();
    choose(input.value.trim());
  };
  return h('form.panel.offer', { onsubmit: submit }, h('h2', null, 'Choose a namespace'),
    h('p', null, `You have no permission to list ${what} in all namespaces. Enter a namespace that you may read.`),
    h('div.fields', null, input, h('button.primary', { type: 'submit' }, 'Show')));
}
