// Which page is shown: the part of the address behind #. Leaving a page aborts all that it follows.

const routes = [];
let leave;
// The address that a page was left with, by its path.
const left = new Map();

// `pattern` is a path with :names; `show(parameters, query, signal)` shows the page.
export function route(pattern, show) {
  routes.push({ parts: pattern.split('/'), show });
}

export function where() {
  const [path, search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path || 'overview', query: new URLSearchParams(search) };
}

export function go(hash) {
  if (location.hash === hash) start();
  else location.hash = hash;
}

// Changes the query of the page that is shown without showing it anew.
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

// Where a page was left, with its filters; nothing if it was not shown.
export function leftAt(path) {
  return left.get(path);
}

export function end() {
  leave?.abort();
  leave = undefined;
}

// What somebody typed may be no encoding: it is taken as it stands.
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
  location.hash = '#/overview';
}
