// Shows the page that the address names behind #. Leaving a page aborts its requests and closes its dialogs.

import { closeDialogs } from './dom.js';

const routes = [];
let leave;
// The last address of each page, by its path.
const left = new Map();

// `pattern` is a path with :names; `show(parameters, query, signal)` shows the page.
export function route(pattern, show) {
  routes.push({ parts: pattern.split('/'), show });
}

export function where() {
  const [path, search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path || 'objects', query: new URLSearchParams(search) };
}

export function go(hash) {
  if (location.hash === hash) start();
  else location.hash = hash;
}

// Changes the query of the current page without showing it again.
export function setQuery(values) {
  const { path, query } = where();
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const search = query.toString();
  history.replaceState(null, '', `#/${path}${search ? `?${search}` : ''}`);
  left.set(path, location.hash);
}

// The last address of a page with its filters, if it was shown.
export function leftAt(path) {
  return left.get(path);
}

export function forgetLeft() {
  left.clear();
}

export function end() {
  leave?.abort();
  leave = undefined;
  closeDialogs();
}

// A part that is not a valid encoding is used unchanged.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function start() {
  end();
  leave = new AbortController();
  const { path, query } = where();
  left.set(path, location.hash);
  const given = path.split('/').map(decoded);
  for (const { parts, show } of routes) {
    if (parts.length !== given.length) continue;
    const parameters = {};
    const fits = parts.every((part, at) => (part.startsWith(':') ? (parameters[part.slice(1)] = given[at], true) : part === given[at]));
    if (fits) return show(parameters, query, leave.signal);
  }
  location.hash = '#/objects';
}
