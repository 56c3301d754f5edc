// Kinds, and the objects of one as the server's Table shows them, kept up to date by a watch.

import { h, replace, failure, append } from './dom.js';
import { TABLE, getJson } from './http.js';
import { fullName, groupVersion, listLink, objectLink, pastLink, pathOf, resource, resources } from './discovery.js';
import { follow } from './watch.js';
import { Grid } from './grid.js';
import { gridKeys } from './grid_keys.js';
import { pageKeys } from './keys.js';
import { go, setQuery } from './router.js';
import { age } from './time.js';
import { newObject } from './create.js';
import { timeChoices, timeField } from './past.js';

// All kinds, to choose one.
export async function kinds({ main, signal }) {
  const all = (await resources()).filter((one) => one.verbs.includes('list'));
  if (signal.aborted) return;
  const grid = new Grid({ label: 'Kinds', open: (row) => go(listLink(row.resource)) });
  const filter = h('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter kinds  /', oninput: () => show() });
  grid.setColumns([
    { title: 'Kind', cell: (row) => row.resource.kind, width: 'minmax(20ch,2fr)', strong: true },
    { title: 'Resource', cell: (row) => fullName(row.resource), width: 'minmax(20ch,3fr)' },
    { title: 'Version', cell: (row) => row.resource.version },
    { title: 'Scope', cell: (row) => (row.resource.namespaced ? 'Namespaced' : 'Cluster') },
    { title: 'Short names', cell: (row) => row.resource.shortNames.join(', ') },
  ]);
  const rows = all.filter((one) => one.preferred).map((one) => ({ id: `${groupVersion(one)}/${one.name}`, resource: one,
    text: `${one.kind} ${fullName(one)} ${one.shortNames.join(' ')}`.toLowerCase() }));
  const show = () => grid.setRows(rows.filter((row) => row.text.includes(filter.value.toLowerCase())));
  replace(main, h('div.bar', null, h('h1', null, 'Objects'), filter), grid.element);
  show();
  grid.body.focus({ preventScroll: true });
  pageKeys(gridKeys(grid, filter));
}

// The objects of one kind.
export async function objects({ main, parameters, query, signal }) {
  const kind = await resource(parameters.group === 'core' ? '' : parameters.group, parameters.version, parameters.resource);
  if (signal.aborted) return;
  const list = new ObjectList(kind, query, signal);
  replace(main, list.element);
  list.grid.body.focus({ preventScroll: true });
  pageKeys({ ...list.keys(), Backspace: ['All kinds', () => go('#/objects')] });
  list.start();
}

class ObjectList {
  constructor(kind, query, signal) {
    this.kind = kind;
    this.signal = signal;
    this.rows = new Map();
    this.order = { at: -1, by: 1 };
    this.grid = new Grid({ label: kind.name, open: (row) => go(objectLink(kind, row.namespace, row.name)) });
    const field = (label, name, value, placeholder) => h('input', { 'aria-label': label, name, value, placeholder, spellcheck: 'false', onchange: () => this.restart() });
    this.namespace = kind.namespaced && h('input', { 'aria-label': 'Namespace', list: 'namespaces', value: query.get('namespace') ?? '', placeholder: 'All namespaces', spellcheck: 'false', onchange: () => this.restart() });
    this.labels = field('Label selector', 'labels', query.get('labels') ?? '', 'Labels: app=web,tier!=db');
    this.at = timeField('', () => this.at.value && go(pastLink(kind, this.namespace?.value, this.at.value)));
    this.filter = h('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter rows  /', value: query.get('filter') ?? '', oninput: () => { setQuery({ filter: this.filter.value }); this.show(); } });
    this.wide = h('input', { type: 'checkbox', id: 'wide', onchange: () => this.columns() });
    this.count = h('span.count', { id: 'count', 'aria-live': 'polite' });
    this.state = h('span.state', { id: 'state' });
    this.problem = h('div');
    this.more = h('div');
    this.element = h('div.page', null,
      h('div.bar', null, h('h1', null, kind.kind), h('span.quiet', null, groupVersion(kind)), this.count, this.state,
        h('span.grow'), this.namespace, this.namespace && h('datalist', { id: 'namespaces' }), this.labels, this.at, timeChoices(), this.filter,
        h('label.check', { for: 'wide' }, this.wide, 'Wide'),
        kind.verbs.includes('create') && h('button', { type: 'button', onclick: () => newObject(kind, this.namespace?.value) }, 'New')),
      this.problem, this.grid.element, this.more);
    signal.addEventListener('abort', () => { this.grid.end(); clearInterval(this.ages); this.following?.abort(); });
  }

  keys() {
    return {
      ...gridKeys(this.grid, this.filter),
      n: ['Namespace', () => this.namespace?.focus()],
      l: ['Label selector', () => this.labels.focus()],
      t: ['A time in the past', () => this.at.focus()],
      w: ['Wide or narrow', () => this.wide.click()],
      r: ['List again', () => this.start()],
    };
  }

  restart() {
    setQuery({ namespace: this.namespace?.value, labels: this.labels.value });
    this.start();
  }

  start() {
    this.following?.abort();
    this.following = new AbortController();
    const { signal } = this.following;
    clearInterval(this.ages);
    this.ages = setInterval(() => this.grid.redraw(), 30000);
    this.rows.clear();
    this.state.textContent = 'Loading …';
    this.state.className = 'state';
    this.suggestNamespaces();
    const path = pathOf(this.kind, this.namespace?.value);
    follow(path, { labelSelector: this.labels.value }, { accept: TABLE, watches: this.kind.verbs.includes('watch'), signal }, {
      begin: (table) => { this.rows.clear(); replace(this.problem); this.defined = table.columnDefinitions ?? []; this.columns(); this.add(table); },
      page: (table) => this.add(table),
      changed: (type, table) => this.change(type, table),
      state: (state, error) => this.showState(state, error),
      full: (rows, rest) => this.askForMore(rows, rest, signal),
    });
  }

  async suggestNamespaces() {
    const list = this.element.querySelector('datalist');
    if (!list || list.childElementCount) return;
    try {
      const { items } = await getJson('/api/v1/namespaces?limit=500', { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', signal: this.signal });
      append(list, items.map((item) => h('option', { value: item.metadata.name })));
    } catch { /* Who may not list them writes a name. */ }
  }

  add(table, fresh) {
    for (const { cells, object } of table.rows ?? []) {
      const { uid, name, namespace, creationTimestamp: created } = object.metadata;
      this.rows.set(uid, { id: uid, name, namespace, created, cells, fresh, text: `${namespace ?? ''} ${cells.join(' ')}`.toLowerCase() });
    }
    this.later();
  }

  change(type, table) {
    if (type !== 'DELETED') return this.add(table, true);
    for (const { object } of table.rows ?? []) this.rows.delete(object.metadata.uid);
    this.later();
  }

  // Many changes are shown at once.
  later() {
    this.asked ??= requestAnimationFrame(() => { this.asked = undefined; if (!this.signal.aborted) this.show(); });
  }

  columns() {
    const wide = this.wide.checked;
    const shown = this.defined.map((column, at) => ({ column, at })).filter(({ column }) => wide || !column.priority);
    const columns = shown.map(({ column, at }) => {
      const isAge = column.name === 'Age';
      const cell = isAge ? (row) => age(row.created) : (row) => row.cells[at];
      const sort = isAge ? (row) => -Date.parse(row.created) : cell;
      const width = at === 0 ? 'minmax(24ch,3fr)' : isAge ? '8ch' : 'minmax(9ch,1fr)';
      return { title: column.name, description: column.description, cell, sort, width, strong: at === 0 };
    });
    if (this.kind.namespaced && !this.namespace.value) columns.unshift({ title: 'Namespace', cell: (row) => row.namespace, sort: (row) => row.namespace, width: 'minmax(14ch,1fr)' });
    this.shown = columns;
    this.drawColumns();
  }

  drawColumns() {
    const { at, by } = this.order;
    this.shown.forEach((column, index) => { column.order = index === at ? by : 0; });
    this.grid.setColumns(this.shown, (index) => {
      this.order = { at: index, by: index === this.order.at ? -this.order.by : 1 };
      this.drawColumns();
      this.show();
    });
  }

  show() {
    const wanted = this.filter.value.toLowerCase();
    let rows = [...this.rows.values()];
    if (wanted) rows = rows.filter((row) => row.text.includes(wanted));
    const sort = this.shown?.[this.order.at]?.sort;
    if (sort) {
      const compare = new Intl.Collator(undefined, { numeric: true }).compare;
      const of = (row) => sort(row) ?? '';
      rows.sort((a, b) => this.order.by * (typeof of(a) === 'number' && typeof of(b) === 'number' ? of(a) - of(b) : compare(of(a), of(b))));
    }
    this.grid.setRows(rows);
    this.count.textContent = rows.length === this.rows.size ? `${rows.length}` : `${rows.length} of ${this.rows.size}`;
    for (const row of this.rows.values()) row.fresh = false;
  }

  showState(state, error) {
    this.state.className = `state ${state}`;
    this.state.textContent = { live: '● Live', lost: '○ Reconnecting …', listed: 'Not watchable: r lists again' }[state];
    if (error?.code) {
      replace(this.problem, failure(error));
      if (error.code < 500) this.state.textContent = '';
    }
  }

  // Resolves when more rows are wanted.
  askForMore(rows, rest, signal) {
    return new Promise((resolve) => {
      const done = () => { replace(this.more); resolve(); };
      const text = rest ? `${rows} rows are shown, ${rest} are left.` : `${rows} rows are shown.`;
      replace(this.more, h('p', null, text, ' ', h('button', { type: 'button', onclick: done }, 'Load more')));
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
