// Light or dark: what the system says, or what was chosen here.

const KEY = 'portico-console-theme';
const ORDER = ['system', 'light', 'dark'];

export function theme() {
  const kept = localStorage.getItem(KEY);
  return ORDER.includes(kept) ? kept : 'system';
}

export function applyTheme() {
  const chosen = theme();
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function nextTheme() {
  localStorage.setItem(KEY, ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
  applyTheme();
  return theme();
}
