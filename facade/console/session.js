// What the browser keeps: the token for this tab only, and settings for all tabs, light or dark among them.

const PREFIX = 'portico-console-';
const KEY = `${PREFIX}token`;
const listeners = new Set();

export const session = {
  user: undefined,
  token: () => sessionStorage.getItem(KEY) ?? '',
};

export function remember(token) {
  sessionStorage.setItem(KEY, token);
}

// Removes the token.
export function clear() {
  sessionStorage.removeItem(KEY);
  session.user = undefined;
}

// Ends the session and notifies the listeners.
export function forget() {
  clear();
  for (const listener of listeners) listener();
}

export function whenForgotten(listener) {
  listeners.add(listener);
}

export function load(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function save(name, value) {
  localStorage.setItem(PREFIX + name, JSON.stringify(value));
}

const ORDER = ['system', 'light', 'dark'];

export function theme() {
  const chosen = load('theme');
  return ORDER.includes(chosen) ? chosen : 'system';
}

export function applyTheme() {
  const chosen = theme();
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function nextTheme() {
  save('theme', ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
  applyTheme();
}
