// Settings that the browser remembers, and that all tabs share: light or dark among them.

const PREFIX = 'portico-console-';

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
  return theme();
}
