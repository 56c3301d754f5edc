// The objects of one kind as the server's Table shows them, kept up to date by a watch.

import { button, h, perFrame, replace, failure } from './dom.js';
import { TABLE } from './http.js';
import { groupVersion, objectLink, pastLink, pathOf, resource } from './discovery.js';
import { follow } from './watch.js';
import { Grid, filterField, gridKeys } from './grid.js';
import { pageKeys } from './keys.js';
import { go, setQuery } from './router.js';
import { age } from './time.js';
import { newObject } from './editor.js';
import { removeAll } from './actions.js';
import { isFavorite, toggleFavorite } from './kinds.js';
import { askForNamespace, chosen, inNamespace } from './namespace.js';
import { timeChoices, timeField } from './past.js';
import { may } from './rights.js';

const compare = new Intl.Collator(undefined, { numeric: true }).compare;

export async function objects({ main, parameters, query, signal }) {
  const kind = await resource(parameters);
  const namespace = kind.namespaced ? chosen() : '';
  const [create, remove, history] = await Promise.all(['create', 'delete', 'history'].map((verb) => verb !== 'history' && !kind.verbs.includes(verb) ? false : may(verb, kind, namespace)));
  if (signal.aborted) return;
  const list = new ObjectList(kind, namespace, query, { create, remove, history }, signal);
  replace(main, list.element);
  list.grid.body.focus({ preventScroll: true });
  pageKeys({ ...list.keys(), Backspace: ['All kinds', () => go('#/objects')] });
  list.start();
}

class ObjectList {
  constructor(kind, namespace, query, rights, signal) {
    Object.assign(this, { kind, namespace, rights, signal, rows: new Map(), defined: [], order: { at: -1, by: 1 }, later: perFrame(() => this.show(), signal) });
    this.grid = new Grid({ label: kind.name, signal, open: (row) => go(objectLink(kind, row.namespace, row.name)), onchosen: rights.remove && (() => this.showChosen()) });
    this.labels = h('input', { 'aria-label': 'Label selector', value: query.get('labels') ?? '', placeholder: 'Labels: app=web', title: 'Label selector, such as app=web,tier!=db', spellcheck: 'false', onchange: () => this.select() });
    this.at = timeField('', () => this.at.value && go(pastLink(kind, namespace, this.at.value)));
    this.filter = filterField(() => { setQuery({ filter: this.filter.value }); this.show(); }, query.get('filter') ?? '');
    this.wide = h('input', { type: 'checkbox', id: 'wide', onchange: () => this.columns() });
    this.count = h('span.count', { id: 'count', 'aria-live': 'polite' });
    this.state = h('span.state', { id: 'state' });
    this.problem = h('div');
    this.more = h('div');
    this.removing = button('', () => this.remove(), { id: 'delete-chosen', hidden: true }, 'button.danger');
    this.element = h('div.page', null, this.bar(), this.problem, this.grid.element, this.more);
    signal.addEventListener('abort', () => { clearInterval(this.ages); this.following?.abort(); });
  }

  bar() {
    const { kind, namespace } = this;
    const star = button(isFavorite(kind) ? '★' : '☆', () => { toggleFavorite(kind); star.textContent = isFavorite(kind) ? '★' : '☆'; }, { id: 'favorite', 'aria-label': 'Favorite', title: 'Favorites come first on the start page' }, 'button.plain');
    return h('div.bar', null, star, h('h1', null, kind.kind), h('span.quiet', null, groupVersion(kind), kind.namespaced ? ` ${inNamespace(namespace)}` : ''), this.count, this.state,
      h('span.grow'), this.labels, this.rights.history && [this.at, timeChoices()], this.filter, h('label.check', { for: 'wide' }, this.wide, 'Wide'), this.removing,
      this.rights.create && button('New', () => newObject(kind, namespace), { id: 'new' }));
  }

  keys() {
    return {
      ...gridKeys(this.grid, this.filter),
      x: ['Choose the row', () => this.grid.toggleSelected()],
      l: ['Label selector', () => this.labels.focus()],
      t: ['A time in the past', () => this.at.focus()],
      w: ['Wide or narrow', () => this.wide.click()],
      r: ['List again', () => this.start()],
    };
  }

  select() {
    setQuery({ labels: this.labels.value });
    this.start();
  }

  start() {
    this.following?.abort();
    this.following = new AbortController();
    const { signal } = this.following;
    clearInterval(this.ages);
    this.ages = setInterval(() => this.grid.redraw(), 30000);
    this.rows.clear();
    this.isListed = false;
    this.grid.chosen.clear();
    this.showChosen();
    this.state.textContent = 'Loading …';
    this.state.className = 'state';
    follow(pathOf(this.kind, this.namespace), { labelSelector: this.labels.value }, { accept: TABLE, watches: this.kind.verbs.includes('watch'), signal }, {
      begin: (table) => { this.rows.clear(); this.isListed = true; this.grid.element.hidden = false; replace(this.problem); this.defined = table.columnDefinitions ?? []; this.columns(); this.add(table); },
      page: (table) => this.add(table),
      changed: (type, table) => this.change(type, table),
      state: (state, error) => this.showState(state, error),
      full: (rows, rest) => this.askForMore(rows, rest, signal),
    });
  }

  add(table) {
    for (const { cells, object } of table.rows ?? []) {
      const { uid, name, namespace, creationTimestamp: created } = object.metadata;
      this.rows.set(uid, { id: uid, name, namespace, created, cells, text: `${namespace ?? ''} ${cells.join(' ')}`.toLowerCase() });
    }
    this.later();
  }

  change(type, table) {
    if (type !== 'DELETED') return this.add(table);
    for (const { object } of table.rows ?? []) {
      this.rows.delete(object.metadata.uid);
      if (this.grid.chosen.delete(object.metadata.uid)) this.showChosen();
    }
    return this.later();
  }

  columns() {
    const wide = this.wide.checked;
    const shown = this.defined.map((column, at) => ({ column, at })).filter(({ column }) => wide || !column.priority);
    const columns = shown.map(({ column, at }, index) => {
      const isAge = column.name === 'Age';
      const cell = isAge ? (row) => age(row.created) : (row) => row.cells[at];
      const sort = isAge ? (row) => -Date.parse(row.created) : cell;
      const width = at === 0 ? 'minmax(24ch,3fr)' : isAge ? '8ch' : 'minmax(9ch,1fr)';
      return { title: column.name, description: column.description, cell, sort, width, strong: at === 0, narrow: index === 1 || isAge };
    });
    if (this.kind.namespaced && !this.namespace) columns.unshift({ title: 'Namespace', cell: (row) => row.namespace, sort: (row) => row.namespace, width: 'minmax(14ch,1fr)', narrow: true });
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
      const of = (row) => sort(row) ?? '';
      rows.sort((a, b) => this.order.by * (typeof of(a) === 'number' && typeof of(b) === 'number' ? of(a) - of(b) : compare(of(a), of(b))));
    }
    this.grid.setRows(rows);
    this.count.textContent = rows.length === this.rows.size ? `${rows.length}` : `${rows.length} of ${this.rows.size}`;
  }

  showChosen() {
    this.removing.hidden = !this.grid.chosen.size;
    this.removing.textContent = `Delete ${this.grid.chosen.size} …`;
  }

  async remove() {
    const rows = [...this.grid.chosen].map((id) => this.rows.get(id)).filter(Boolean);
    const failures = await removeAll(this.kind, rows);
    replace(this.problem, failures.map(failure));
  }

  showState(state, error) {
    this.state.className = `state ${state}`;
    this.state.textContent = { live: '● Live', lost: '○ Reconnecting …', listed: 'Not watchable: r lists again' }[state];
    if (!error) replace(this.problem);
    if (!error?.code) return;
    const isEverywhere = !this.isListed && error.code === 403 && this.kind.namespaced && !this.namespace;
    replace(this.problem, isEverywhere ? askForNamespace(this.kind.name) : failure(error));
    this.grid.element.hidden = isEverywhere;
    if (error.code < 500) this.state.textContent = this.isListed ? 'Not watchable: r lists again' : '';
  }

  // Resolves when more rows are wanted.
  askForMore(rows, rest, signal) {
    return new Promise((resolve) => {
      const done = () => { replace(this.more); resolve(); };
      replace(this.more, h('p', null, `${rows} rows are shown${rest ? `, ${rest} are left` : ''}. `, button('Load more', done)));
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
