// The objects of a kind as of a time, and their state since: changed, replaced or deleted.

import { crumbs, h, perFrame, replace } from './dom.js';
import { TABLE } from './http.js';
import { groupVersion, listLink, objectLink, pathOf, resource } from './discovery.js';
import { ALL, follow } from './watch.js';
import { Grid, filterField, gridKeys } from './grid.js';
import { pageKeys } from './keys.js';
import { go, setQuery } from './router.js';
import { chosen, inNamespace } from './namespace.js';
import { historyFailure, past as ask, target } from './states.js';
import { moment, pointInTime } from './time.js';

const key = ({ namespace, name }) => `${namespace ?? ''}/${name}`;

export async function past({ main, parameters, query, signal }) {
  const kind = await resource(parameters);
  if (signal.aborted) return;
  const list = new PastList(kind, query, signal);
  replace(main, list.element);
  list.grid.body.focus({ preventScroll: true });
  pageKeys({ ...gridKeys(list.grid, list.filter), t: ['Time', () => list.at.focus()], d: ['Only objects deleted since', () => list.deleted.click()],
    Backspace: ['Current objects', () => go(listLink(kind))] });
  list.followNow();
  list.load();
}

// The field for a point in time.
export function timeField(value, onchange) {
  return h('input', { 'aria-label': 'Point in time', id: 'at', list: 'times', value, placeholder: 'Past: 15m', title: 'A time in the past: 15m, 2026-01-31T12:00, or a revision', spellcheck: 'false', onchange });
}

export function timeChoices() {
  return h('datalist', { id: 'times' }, ['4m', '15m', '1h', '24h', '168h'].map((value) => h('option', { value })));
}

class PastList {
  constructor(kind, query, signal) {
    Object.assign(this, { kind, signal, rows: [], namespace: kind.namespaced ? chosen() : '', later: perFrame(() => this.show(), signal) });
    this.grid = new Grid({ label: `${kind.name} as of a time`, signal, open: (row) => go(`${objectLink(kind, row.namespace, row.name)}?tab=history`) });
    this.at = timeField(query.get('at') ?? '4m', () => this.restart());
    this.filter = filterField(() => this.show());
    this.deleted = h('input', { type: 'checkbox', id: 'deleted', checked: query.get('deleted') === 'true', onchange: () => { setQuery({ deleted: this.deleted.checked ? 'true' : '' }); this.show(); } });
    this.count = h('span.count', { id: 'count', 'aria-live': 'polite' });
    this.title = h('h1', null, kind.kind);
    this.when = h('p.quiet', { id: 'when', 'aria-live': 'polite' });
    this.problem = h('div');
    this.element = h('div.page', null,
      crumbs(['#/objects', 'Objects'], [listLink(kind), kind.kind]),
      h('div.bar', null, this.title, h('span.quiet', null, groupVersion(kind), kind.namespaced ? ` ${inNamespace(this.namespace)}` : ''), this.count, h('span.grow'), this.at, timeChoices(), this.filter,
        h('label.check', { for: 'deleted' }, this.deleted, 'Deleted since')),
      this.when, this.problem, this.grid.element);
    this.grid.setColumns([
      kind.namespaced && { title: 'Namespace', cell: (row) => row.namespace, width: 'minmax(14ch,1fr)', narrow: true },
      { title: 'Name', cell: (row) => row.name, width: 'minmax(24ch,3fr)', strong: true },
      { title: 'Revision then', cell: (row) => row.revision, width: 'minmax(12ch,1fr)' },
      { title: 'Created', cell: (row) => moment(row.created), width: 'minmax(22ch,1fr)' },
      { title: 'Since then', cell: (row) => this.sinceThen(row), width: 'minmax(16ch,1fr)', narrow: true },
    ].filter(Boolean));
    signal.addEventListener('abort', () => this.loading?.abort());
  }

  restart() {
    setQuery({ at: this.at.value });
    this.load();
    this.followNow();
  }

  // Fills the rows; a later call aborts this one.
  async load() {
    this.loading?.abort();
    const loading = this.loading = new AbortController();
    this.rows = [];
    replace(this.problem);
    this.when.textContent = 'Loading …';
    this.show();
    try {
      const at = pointInTime(this.at.value);
      for await (const part of ask(target(this.kind, this.namespace), at, loading.signal)) {
        this.add(part, at);
        if (this.rows.length >= ALL) { this.when.textContent += ` The first ${ALL} are shown: choose a namespace to see all.`; loading.abort(); return; }
      }
    } catch (error) {
      if (loading.signal.aborted) return;
      this.when.textContent = '';
      replace(this.problem, historyFailure(error));
    }
  }

  add({ revision, objects, unreadable }, { time }) {
    for (const { metadata } of objects) {
      const { name, namespace, uid, resourceVersion, creationTimestamp: created } = metadata;
      this.rows.push({ id: uid, name, namespace, uid, revision: resourceVersion, created, text: key(metadata).toLowerCase() });
    }
    this.title.textContent = `${this.kind.kind} as of ${time ? `${moment(time * 1000)} (revision ${revision})` : `revision ${revision}`}`;
    this.when.textContent = `Open an object to see its history and to restore it.`;
    if (unreadable.length) replace(this.problem, h('p.warning', null, `These objects cannot be read: ${unreadable.join(', ')}`));
    this.show();
  }

  // The current objects, kept up to date by a watch.
  followNow() {
    this.following?.abort();
    this.following = new AbortController();
    const now = this.now = new Map();
    const put = (table) => { for (const { object } of table.rows ?? []) now.set(key(object.metadata), object.metadata); this.later(); };
    this.isKnown = false;
    follow(pathOf(this.kind, this.namespace), {}, { accept: TABLE, watches: this.kind.verbs.includes('watch'), signal: AbortSignal.any([this.signal, this.following.signal]) }, {
      begin: (table) => { this.isKnown = false; now.clear(); put(table); },
      page: put,
      changed: (type, table) => {
        if (type === 'DELETED') for (const { object } of table.rows ?? []) now.delete(key(object.metadata));
        else put(table);
        this.later();
      },
      state: (state) => { this.isKnown = state === 'live' || state === 'listed'; this.later(); },
    });
  }

  changeOf(row) {
    const now = this.now.get(key(row));
    if (!this.isKnown) return '';
    if (!now) return 'deleted';
    if (now.uid !== row.uid) return 'replaced';
    return now.resourceVersion === row.revision ? 'same' : 'changed';
  }

  sinceThen(row) {
    const words = { deleted: '✗ deleted', replaced: '✗ deleted and recreated', changed: '● changed', same: 'unchanged', '': '–' };
    const change = this.changeOf(row);
    return h(['deleted', 'replaced'].includes(change) ? 'span.bad' : 'span', null, words[change]);
  }

  show() {
    const wanted = this.filter.value.toLowerCase();
    const rows = this.rows.filter((row) => row.text.includes(wanted) && (!this.deleted.checked || ['deleted', 'replaced'].includes(this.changeOf(row))));
    this.grid.setRows(rows);
    this.count.textContent = rows.length === this.rows.length ? `${rows.length}` : `${rows.length} of ${this.rows.length}`;
  }
}
