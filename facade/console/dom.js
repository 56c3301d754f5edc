// Builds elements. Text always becomes a text node, never markup; styles are set by classes.

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

function append(node, children) {
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

// An SVG element.
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

export function button(text, onclick, attributes, name = 'button') {
  return h(name, { type: 'button', onclick, ...attributes }, text);
}

// A function that calls `run` in the next frame, once for many calls, unless `signal` has aborted.
export function perFrame(run, signal) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      if (!signal?.aborted) run();
    });
  };
}

// Shows a result for a few seconds; screen readers announce it.
export function notify(text) {
  const node = replace(document.getElementById('status'), text);
  clearTimeout(node.timer);
  node.timer = setTimeout(() => replace(node), 8000);
}

// An error as the server reports it. A missing permission is not an alarm.
export function failure(error) {
  const status = error?.status;
  return h(error?.code === 403 ? 'div.failure.refused' : 'div.failure', { role: 'alert' },
    h('strong', null, error?.code === 403 ? 'Not allowed' : status ? `${status.code} ${status.reason ?? ''}`.trim() : 'Failed'),
    h('span', null, error?.message ?? String(error)),
    (status?.details?.causes ?? []).map((cause) =>
      h('span.cause', null, [cause.reason, cause.field, cause.message].filter(Boolean).join(': '))));
}

// The way to a page: links as [address, text].
export function crumbs(...links) {
  return h('nav.crumbs', { 'aria-label': 'Breadcrumb' }, links.filter(Boolean).map(([href, text], at) => [at > 0 && ' / ', h('a', { href }, text)]));
}

// A table of rows; a cell is a text or a node. Narrow windows show each cell with the name of its column.
export function table(caption, columns, rows, attributes) {
  return h('div.scroll', null, h('table.plain', { 'aria-label': caption, ...attributes },
    h('thead', null, h('tr', null, columns.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, rows.length ? rows.map((cells) => h('tr', null, cells.map((cell, at) => h('td', { 'data-label': columns[at] }, cell))))
      : h('tr', null, h('td.quiet', { colspan: columns.length }, 'None')))));
}

// Good or bad, as a word with a mark that does not need color.
export function mark(ok, text) {
  return h(ok ? 'span.good' : 'span.bad', null, ok ? '✓ ' : '✗ ', text);
}

export function section(title, ...children) {
  return h('section.panel', null, h('h2', null, title), ...children);
}

// Opens a dialog, which is removed from the document when it closes.
export function dialog(name, title, ...children) {
  const node = h(name, { 'aria-labelledby': 'dialog-title' }, h('h2', { id: 'dialog-title' }, title), ...children);
  node.addEventListener('close', () => node.remove());
  document.body.append(node);
  node.showModal();
  return node;
}

// Closes all dialogs: they belong to the page that is left.
export function closeDialogs() {
  for (const node of document.querySelectorAll('dialog')) node.close();
}

// Asks for a confirmation; resolves to true if `verb` was pressed.
export function confirmed(title, verb, ...children) {
  const node = dialog('dialog', title, children, h('form.buttons', { method: 'dialog' },
    h('button', { value: 'no', autofocus: true }, 'Cancel'), h('button.danger', { value: 'yes', id: 'confirm' }, verb)));
  return new Promise((resolve) => { node.addEventListener('close', () => resolve(node.returnValue === 'yes')); });
}
