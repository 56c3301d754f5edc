// The states that an object has had, what lies between two of them, and the way back to one.

import { h, replace, failure } from './dom.js';
import { pause } from './http.js';
import { showDiff } from './diff.js';
import { askToRestore } from './restore.js';
import { CREATED, DELETED, RETENTION, comparable, stateAt, states, target } from './states.js';
import { age, moment } from './time.js';
import { printYaml } from './yaml.js';

const PAGE = 50;
// How often the newest states are asked for at most, while an object changes all the time.
const QUIET = 1000;
const WORDS = { [CREATED]: 'created', CHANGE_UPDATED: 'updated', [DELETED]: 'deleted' };

export function history(view, into, signal) {
  const shown = new History(view, signal);
  replace(into, shown.element);
  shown.refresh();
  view.changes.addEventListener('change', () => shown.refresh(), { signal });
}

class History {
  constructor(view, signal) {
    Object.assign(this, { view, signal, states: [], texts: new Map() });
    this.of = target(view.kind, view.namespace, view.name);
    this.problem = h('div');
    this.list = h('div', null, h('p.quiet', null, 'Loading …'));
    this.end = h('div');
    this.difference = h('div', { id: 'difference', 'aria-live': 'polite' });
    this.element = h('div.stack', null, this.problem, this.list, this.end, this.difference);
  }

  // Asks for the newest states; what changes meanwhile is asked for once more, after a while.
  async refresh() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    do {
      this.again = false;
      await this.load();
      await pause(this.again ? QUIET : 0, this.signal);
    } while (this.again && !this.signal.aborted);
    this.asking = false;
  }

  async load(before) {
    try {
      const { states: found, more } = await states(this.of, { before, limit: PAGE }, this.signal);
      if (before || !this.states.length) this.more = more;
      const known = new Map(this.states.map((state) => [state.revision, state]));
      const gap = !before && this.states.length && more && !found.some((state) => known.has(state.revision));
      if (gap) { known.clear(); this.more = true; }
      for (const state of found) known.set(state.revision, state);
      this.states = [...known.values()].sort((a, b) => Number(b.revision) - Number(a.revision));
      replace(this.problem);
      this.show();
    } catch (error) {
      if (this.signal.aborted) return;
      replace(this.problem, failure(error), error.code === 404 && h('p.quiet', null, 'Histories are kept of what this server stores itself.'), error.code === 410 && h('p.quiet', null, RETENTION));
      if (!this.states.length) replace(this.list);
    }
  }

  // The two states that are compared: those that were chosen, or the last one with the one before it.
  compared() {
    const find = (revision) => this.states.findIndex((state) => state.revision === revision);
    const later = Math.max(0, find(this.later));
    const earlier = find(this.earlier);
    return [this.states[earlier > later ? earlier : later + 1], this.states[later]];
  }

  show() {
    const focused = document.activeElement?.id;
    const [earlier, later] = this.compared();
    replace(this.list, !this.view.isThere && this.states.length ? h('div.buttons', null,
      h('button.primary', { type: 'button', id: 'undelete', onclick: () => this.restore('0') }, 'Undelete'), h('span.quiet', null, 'as it was last')) : null,
    h('div.scroll', null, h('table.plain', { 'aria-label': 'States' },
      h('thead', null, h('tr', null, ['Earlier', 'Later', 'Revision', 'Written', 'Change', 'Field manager', ''].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, this.states.length ? this.states.map((state, at) => this.row(state, at, earlier, later)) : h('tr', null, h('td.quiet', { colspan: 7 }, 'No states are kept.'))))));
    this.showEnd();
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    this.compare(earlier, later);
  }

  row(state, at, earlier, later) {
    const { revision, change, written, manager, unreadable } = state;
    const time = Number(written) ? new Date(Number(written) * 1000).toISOString() : '';
    const pick = (name, chosen) => h('input', { type: 'radio', name, id: `${name}-${revision}`, 'aria-label': `${name} revision ${revision}`, checked: chosen === state,
      onchange: () => { this[name] = revision; this.show(); } });
    const isNow = at === 0 && this.view.isThere;
    return h('tr', null, [pick('earlier', earlier), pick('later', later), revision, time ? h('span', { title: moment(time) }, `${moment(time)} · ${age(time)} ago`) : 'unknown',
      h(change === DELETED ? 'span.bad' : 'span', null, change === DELETED ? '✗ ' : '', WORDS[change] ?? change), unreadable ? h('span.bad', null, `✗ cannot be read: ${unreadable}`) : manager,
      isNow ? h('span.quiet', null, 'now') : change !== DELETED && !unreadable && h('button', { type: 'button', id: `restore-${revision}`, 'aria-label': `Restore revision ${revision}`, onclick: () => this.restore(revision) }, 'Restore …'),
    ].map((cell) => h('td', null, cell)));
  }

  showEnd() {
    const oldest = this.states.at(-1);
    replace(this.end, this.more ? h('button', { type: 'button', onclick: () => this.load(oldest.revision) }, 'Older states')
      : oldest?.change === CREATED ? null : h('p.quiet', null, oldest ? `States before revision ${oldest.revision} are no longer kept. ` : '', RETENTION));
  }

  restore(revision) {
    askToRestore({ of: this.of, revision, current: this.view.isThere ? this.view.object : undefined });
  }

  async text(state) {
    if (!state || state.change === DELETED) return '';
    if (!this.texts.has(state.revision)) this.texts.set(state.revision, printYaml(comparable(await stateAt(this.of, state.revision, this.signal))));
    return this.texts.get(state.revision);
  }

  async compare(earlier, later) {
    const pair = `${earlier?.revision} ${later?.revision}`;
    if (this.pair === pair) return;
    this.pair = pair;
    if (!later) return replace(this.difference);
    try {
      const [before, after] = await Promise.all([this.text(earlier), this.text(later)]);
      if (this.pair !== pair) return;
      const name = (state) => `revision ${state.revision}${state.change === DELETED ? ' (deleted)' : ''}`;
      replace(this.difference, h('h3', null, earlier ? `From ${name(earlier)} to ${name(later)}` : `All of ${name(later)}`), showDiff(before, after, 'Nothing differs but the managers of fields.'));
    } catch (error) {
      if (!this.signal.aborted && this.pair === pair) replace(this.difference, failure(error));
    }
  }
}
