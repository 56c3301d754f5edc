// The keyboard: single keys where nobody types, `g` and a letter to go somewhere, `?` for help.

import { h } from './dom.js';

let page = new Map();
let global = new Map();
let waiting = false;

// Keys of the page that is shown: { key: [what it does, function] }.
export function pageKeys(keys) {
  page = new Map(Object.entries(keys));
}

export function globalKeys(keys) {
  global = new Map(Object.entries(keys));
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function listen() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (document.querySelector('dialog[open]')) return;
    // Enter on a link or a button is theirs.
    if (event.key === 'Enter' && event.target.closest?.('a, button, summary')) return;
    const key = waiting ? `g ${event.key}` : event.key;
    waiting = !waiting && event.key === 'g';
    const found = page.get(key) ?? global.get(key);
    if (!found) return;
    event.preventDefault();
    waiting = false;
    found[1]();
  });
}

const NAMES = { Escape: 'Esc', Enter: 'Enter' };

export function showHelp() {
  const rows = (keys) => [...keys].map(([key, [what]]) => h('div.key', null,
    h('dt', null, key.split(' ').map((one) => h('kbd', null, NAMES[one] ?? one))), h('dd', null, what)));
  const dialog = h('dialog.help', { 'aria-labelledby': 'help-title' },
    h('h2', { id: 'help-title' }, 'Keys'),
    h('dl', null, rows(page), rows(global)),
    h('form', { method: 'dialog' }, h('button.primary', { autofocus: true }, 'Close')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
