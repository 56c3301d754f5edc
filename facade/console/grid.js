// A list of any length, of which only the rows in sight are in the document. Arrows and j/k move, Enter opens.

import { h, perFrame, replace } from './dom.js';

const ROW = 30;
const MARGIN = 12;
const NARROW = matchMedia('(max-width: 720px)');

export class Grid {
  // `open(row)` opens a row. With `onchosen`, rows have a checkbox and `chosen` holds the ids of the checked ones. The grid lives until
  // `signal` aborts.
  constructor({ label, open, onchosen, signal }) {
    Object.assign(this, { open, onchosen, rows: [], all: [], columns: [], selected: 0, drawn: new Map(), chosen: new Set(), later: perFrame(() => this.draw()) });
    this.head = h('div.grid-head', { role: 'row' });
    this.sizer = h('div.grid-rows', { role: 'presentation' });
    this.body = h('div.grid-body', { role: 'rowgroup', tabindex: '0', 'aria-label': `${label}, use arrows and Enter` }, this.sizer);
    this.element = h('div.grid', { role: 'grid', 'aria-label': label }, this.head, this.body);
    this.body.addEventListener('scroll', () => this.later(), { passive: true });
    this.body.addEventListener('keydown', (event) => this.key(event));
    const observer = new ResizeObserver(() => this.later());
    observer.observe(this.body);
    signal.addEventListener('abort', () => observer.disconnect());
    NARROW.addEventListener('change', () => this.setColumns(this.all, this.sorted), { signal });
  }

  // A column is { title, cell(row), sort(row)?, width, strong, narrow }; `width` is one of CSS grid's. Narrow windows show
  // the columns that are `strong` or `narrow`.
  setColumns(columns, sorted) {
    Object.assign(this, { all: columns, sorted });
    this.columns = NARROW.matches ? columns.filter((column) => column.strong || column.narrow) : columns;
    const widths = this.columns.map((column) => (NARROW.matches ? (column.strong ? 'minmax(0,4fr)' : 'minmax(0,2fr)') : column.width ?? 'minmax(8ch,1fr)'));
    this.element.style.setProperty('--columns', [this.onchosen && '16px', ...widths].filter(Boolean).join(' '));
    this.everything = this.onchosen && h('input', { type: 'checkbox', 'aria-label': 'Choose all rows', onchange: () => this.chooseAll() });
    replace(this.head, this.everything, this.columns.map((column) => h('button.grid-title', {
      type: 'button', role: 'columnheader', title: column.description, onclick: () => sorted?.(columns.indexOf(column)),
      'aria-sort': column.order ? (column.order > 0 ? 'ascending' : 'descending') : 'none',
    }, column.title, column.order ? (column.order > 0 ? ' ↑' : ' ↓') : '')));
    this.redraw();
  }

  // The first row is active until another one is; the active row stays so when rows arrive or leave.
  setRows(rows) {
    const active = this.hasMoved && this.rows[this.selected];
    const at = active ? rows.findIndex((row) => row.id === active.id) : 0;
    this.rows = rows;
    this.selected = at < 0 ? Math.max(0, Math.min(this.selected, rows.length - 1)) : at;
    this.element.setAttribute('aria-rowcount', rows.length);
    this.sizer.style.height = `${rows.length * ROW}px`;
    this.redraw();
  }

  redraw() {
    for (const node of this.drawn.values()) node.remove();
    this.drawn.clear();
    this.later();
  }

  draw() {
    this.element.style.setProperty('--scrollbar', `${this.body.offsetWidth - this.body.clientWidth}px`);
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / ROW) + MARGIN);
    for (const [at, node] of this.drawn) {
      if (at < first || at >= last) { node.remove(); this.drawn.delete(at); }
    }
    for (let at = first; at < last; at++) {
      if (!this.drawn.has(at)) this.drawn.set(at, this.sizer.appendChild(this.row(at)));
    }
    if (this.drawn.has(this.selected)) this.body.setAttribute('aria-activedescendant', `row-${this.selected}`);
    else this.body.removeAttribute('aria-activedescendant');
  }

  row(at) {
    const row = this.rows[at];
    const node = h('div.grid-row', {
      role: 'row', id: `row-${at}`, 'aria-rowindex': at + 1, 'aria-selected': at === this.selected ? 'true' : 'false',
      onclick: () => { this.select(at); this.open?.(row); },
    }, this.onchosen && this.checkbox(row), this.columns.map((column) => {
      const value = column.cell(row);
      return h(column.strong ? 'span.grid-cell.strong' : 'span.grid-cell', { role: 'gridcell', title: value instanceof Node ? undefined : String(value ?? '') }, value ?? '');
    }));
    node.style.transform = `translateY(${at * ROW}px)`;
    return node;
  }

  checkbox(row) {
    return h('input', { type: 'checkbox', 'aria-label': `Choose ${row.name}`, checked: this.chosen.has(row.id),
      onclick: (event) => event.stopPropagation(), onchange: () => this.toggle(row) });
  }

  toggle(row) {
    if (!this.chosen.delete(row.id)) this.chosen.add(row.id);
    this.showChosen();
  }

  chooseAll() {
    this.chosen = new Set(this.everything.checked ? this.rows.map((row) => row.id) : []);
    this.showChosen();
  }

  showChosen() {
    for (const [at, node] of this.drawn) node.firstChild.checked = this.chosen.has(this.rows[at].id);
    this.onchosen();
  }

  toggleSelected() {
    if (this.onchosen && this.rows[this.selected]) this.toggle(this.rows[this.selected]);
  }

  select(at) {
    if (!this.rows.length) return;
    this.hasMoved = true;
    const was = this.drawn.get(this.selected);
    was?.setAttribute('aria-selected', 'false');
    this.selected = Math.max(0, Math.min(at, this.rows.length - 1));
    const top = this.selected * ROW, view = this.body;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + ROW > view.scrollTop + view.clientHeight) view.scrollTop = top + ROW - view.clientHeight;
    this.draw();
    this.drawn.get(this.selected)?.setAttribute('aria-selected', 'true');
  }

  move(by) {
    this.select(this.selected + by);
  }

  openSelected() {
    const row = this.rows[this.selected];
    if (row) this.open?.(row);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (event.target !== this.body) return;
    if (event.key in moves) {
      event.preventDefault();
      this.move(moves[event.key]);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.openSelected();
    }
  }
}

export function filterField(oninput, value = '', what = 'rows') {
  return h('input', { type: 'search', 'aria-label': 'Filter', title: 'Filter (f)', placeholder: `Filter ${what}`, value, spellcheck: 'false', oninput });
}

// Keys of a page that is a grid with a filter.
export function gridKeys(grid, filter) {
  return {
    j: ['Next row', () => grid.move(1)],
    k: ['Previous row', () => grid.move(-1)],
    G: ['Last row', () => grid.select(grid.rows.length - 1)],
    'g g': ['First row', () => grid.select(0)],
    Enter: ['Open the row', () => grid.openSelected()],
    f: ['Filter', () => filter.focus()],
    Escape: ['Clear the filter', () => { filter.value = ''; filter.dispatchEvent(new Event('input')); grid.body.focus(); }],
  };
}
