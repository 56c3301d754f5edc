// Keyboard shortcuts: single keys outside of text fields, `g` and a letter for a page, `?` for help.

import { dialog, h } from './dom.js';

let page = new Map();
let global = new Map();
let waiting = false;

// Keys of the current page: { key: [description, function] }.
export function pageKeys(keys) {
  page = new Map(Object.entries(keys));
}

export function globalKeys(keys) {
  global = new Map(Object.entries(keys));
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target.tagName === 'INPUT' && !['checkbox', 'radio'].includes(target.type)));
}

// Frames around focused elements are for users of the keyboard.
function watchInput() {
  const { dataset } = document.documentElement;
  document.addEventListener('keydown', () => { dataset.keys = ''; }, true);
  document.addEventListener('pointerdown', () => { delete dataset.keys; }, true);
}

export function listen() {
  watchInput();
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (document.querySelector('dialog[open]')) return;
    // Links and buttons handle Enter themselves.
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
  dialog('dialog.help', 'Keys', h('dl', null, rows(page), rows(global)),
    h('form', { method: 'dialog' }, h('button.primary', { autofocus: true }, 'Close')));
}
