// A list of any length, of which only the rows in sight are in the document. Arrows and j/k move, Enter opens.

import { h, replace } from './dom.js';

const ROW = 30;
const MARGIN = 12;

export class Grid {
  // `open(row)` is called for the row that is chosen.
  constructor({ label, open }) {
    this.rows = [];
    this.columns = [];
    this.selected = -1;
    this.open = open;
    this.drawn = new Map();
    this.head = h('div.grid-head', { role: 'row' });
    this.sizer = h('div.grid-rows', { role: 'presentation' });
    this.body = h('div.grid-body', { role: 'rowgroup', tabindex: '0', 'aria-label': `${label}, use arrows and Enter` }, this.sizer);
    this.element = h('div.grid', { role: 'grid', 'aria-label': label }, this.head, this.body);
    this.body.addEventListener('scroll', () => this.later(), { passive: true });
    this.body.addEventListener('keydown', (event) => this.key(event));
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.body);
  }

  // A column is { title, cell(row), sort(row)?, width, strong }, where width is one of CSS grid's.
  setColumns(columns, sorted) {
    this.columns = columns;
    this.element.style.setProperty('--columns', columns.map((column) => column.width ?? 'minmax(8ch,1fr)').join(' '));
    replace(this.head, columns.map((column, at) => h('button.grid-title', {
      type: 'button', role: 'columnheader', title: column.description, onclick: () => sorted?.(at),
      'aria-sort': column.order ? (column.order > 0 ? 'ascending' : 'descending') : 'none',
    }, column.title, column.order ? (column.order > 0 ? ' ↑' : ' ↓') : '')));
    this.redraw();
  }

  setRows(rows) {
    const chosen = this.rows[this.selected]?.id;
    this.rows = rows;
    this.selected = chosen === undefined ? -1 : rows.findIndex((row) => row.id === chosen);
    this.element.setAttribute('aria-rowcount', rows.length);
    this.sizer.style.height = `${rows.length * ROW}px`;
    this.redraw();
  }

  redraw() {
    for (const node of this.drawn.values()) node.remove();
    this.drawn.clear();
    this.later();
  }

  later() {
    this.asked ??= requestAnimationFrame(() => { this.asked = undefined; this.draw(); });
  }

  draw() {
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
    }, this.columns.map((column) => {
      const value = column.cell(row);
      return h(column.strong ? 'span.grid-cell.strong' : 'span.grid-cell', { role: 'gridcell', title: value instanceof Node ? undefined : String(value ?? '') }, value ?? '');
    }));
    node.style.transform = `translateY(${at * ROW}px)`;
    if (row.fresh) node.classList.add('fresh');
    return node;
  }

  select(at) {
    if (!this.rows.length) return;
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
    this.select(this.selected < 0 ? 0 : this.selected + by);
  }

  openSelected() {
    const row = this.rows[this.selected];
    if (row) this.open?.(row);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      this.move(moves[event.key] === -Infinity ? -this.rows.length : moves[event.key] === Infinity ? this.rows.length : moves[event.key]);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.openSelected();
    }
  }

  end() {
    this.observer.disconnect();
    if (this.asked) cancelAnimationFrame(this.asked);
  }
}
