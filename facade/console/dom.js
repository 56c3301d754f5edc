// Makes elements. Text always becomes a text node, never markup; styles are set by classes.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'hidden') node[name] = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// An element with attributes (`onclick` and the like are listeners) and children.
export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  return fill(node, attributes, children);
}

// The same for SVG.
export function s(name, attributes, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElementNS(SVG, tag);
  if (classes.length) node.setAttribute('class', classes.join(' '));
  return fill(node, attributes, children);
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

// What went wrong, in the server's words.
export function failure(error) {
  const status = error?.status;
  return h('div.failure', { role: 'alert' },
    h('strong', null, status ? `${status.code} ${status.reason ?? ''}`.trim() : 'Failed'),
    h('span', null, error?.message ?? String(error)),
    (status?.details?.causes ?? []).map((cause) =>
      h('span.cause', null, [cause.reason, cause.field, cause.message].filter(Boolean).join(': '))));
}

// A table of rows; a cell is a text or a node.
export function table(caption, columns, rows, attributes) {
  return h('div.scroll', null, h('table.plain', { 'aria-label': caption, ...attributes },
    h('thead', null, h('tr', null, columns.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, rows.length ? rows.map((cells) => h('tr', null, cells.map((cell) => h('td', null, cell))))
      : h('tr', null, h('td.quiet', { colspan: columns.length }, 'None')))));
}

// Good or bad, as a word with a mark that does not need colour.
export function mark(ok, text) {
  return h(ok ? 'span.good' : 'span.bad', null, ok ? '✓ ' : '✗ ', text);
}

export function section(title, ...children) {
  return h('section.panel', null, h('h2', null, title), ...children);
}
