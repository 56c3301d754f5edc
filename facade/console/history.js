// The history of an object: its states, the difference between two of them, and restoring one.

import { button, h, replace, failure, dialog } from './dom.js';
import { pause } from './http.js';
import { showDiff } from './yaml_view.js';
import { hidden, printYaml } from './yaml.js';
import { CREATED, DELETED, RETENTION, historyFailure, comparable, stateAt, states, target, restored } from './states.js';
import { age, moment } from './time.js';

const PAGE = 50;
// Pause between requests for the newest states while an object changes all the time.
const MIN_INTERVAL = 1000;
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

  // Loads the newest states; changes that arrive in the meantime cause one more request.
  async refresh() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    do {
      this.again = false;
      await this.load();
      await pause(this.again ? MIN_INTERVAL : 0, this.signal);
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
      replace(this.problem, historyFailure(error), error.code === 404 && h('p.quiet', null, 'Only objects that this server stores itself have a history.'));
      if (!this.states.length) replace(this.list);
    }
  }

  // The two states to compare: the chosen ones, or the newest two.
  compared() {
    const find = (revision) => this.states.findIndex((state) => state.revision === revision);
    const later = Math.max(0, find(this.later));
    const earlier = find(this.earlier);
    return [this.states[earlier > later ? earlier : later + 1], this.states[later]];
  }

  show() {
    const focused = document.activeElement?.id;
    const [earlier, later] = this.compared();
    const { create, update } = this.view.rights;
    replace(this.list, !this.view.isThere && create && this.states.length ? h('div.buttons', null,
      button('Undelete', () => this.restore('0'), { id: 'undelete' }, 'button.primary'), h('span.quiet', null, 'in its last state')) : null,
    h('table.plain.states', { 'aria-label': 'States' },
      h('thead', null, h('tr', null, ['From', 'To', 'Revision', 'Change', ''].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, this.states.length ? this.states.map((state, at) => this.row(state, at, [earlier, later], this.view.isThere ? update : create)) : h('tr', null, h('td.quiet', { colspan: 5 }, 'No states are kept.')))));
    this.showEnd();
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    this.compare(earlier, later);
  }

  row(state, at, [earlier, later], canRestore) {
    const { revision, change, written, manager, unreadable } = state;
    const time = Number(written) ? new Date(Number(written) * 1000).toISOString() : '';
    const pick = (name, chosen) => h('input', { type: 'radio', name, id: `${name}-${revision}`, 'aria-label': `${name} revision ${revision}`, checked: chosen === state,
      onchange: () => { this[name] = revision; this.show(); } });
    const isNow = at === 0 && this.view.isThere;
    const isDeleted = change === DELETED;
    return h('tr', null, [pick('earlier', earlier), pick('later', later), revision,
      [h(isDeleted ? 'span.bad' : 'span', null, isDeleted ? '✗ ' : '', WORDS[change] ?? change), !unreadable && manager && [' by ', h('b', null, manager)],
        h('span.quiet', null, time ? ` · ${moment(time)} · ${age(time)} ago` : ' at an unknown time'), unreadable && h('span.bad', null, ` ✗ cannot be read: ${unreadable}`)],
      isNow ? h('span.quiet', null, 'now') : canRestore && !isDeleted && !unreadable && button('Restore …', () => this.restore(revision), { id: `restore-${revision}`, 'aria-label': `Restore revision ${revision}` }),
    ].map((cell) => h('td', null, cell)));
  }

  showEnd() {
    const oldest = this.states.at(-1);
    replace(this.end, this.more ? button('Older states', () => this.load(oldest.revision))
      : oldest?.change === CREATED ? null : h('p.quiet', null, oldest ? `States before revision ${oldest.revision} are no longer kept. ` : '', RETENTION));
  }

  restore(revision) {
    askToRestore({ of: this.of, revision, current: this.view.isThere ? this.view.object : undefined });
  }

  async text(state) {
    if (!state || state.change === DELETED) return '';
    if (!this.texts.has(state.revision)) this.texts.set(state.revision, printYaml(comparable(hidden(await stateAt(this.of, state.revision, this.signal)))));
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
      replace(this.difference, h('h3', null, earlier ? `From ${name(earlier)} to ${name(later)}` : `All of ${name(later)}`), showDiff(before, after, 'Only field managers or the annotation of kubectl apply differ.'));
    } catch (error) {
      if (this.signal.aborted || this.pair !== pair) return;
      this.pair = undefined;
      replace(this.difference, failure(error));
    }
  }
}

const shownText = (object) => printYaml(comparable(hidden(object)));

// `current` is the object as it is now, if it exists; revision 0 is the last state of a deleted object.
function askToRestore({ of, revision, current }) {
  const verb = current ? 'Restore' : 'Undelete';
  const shown = h('div', { 'aria-live': 'polite' }, h('p.quiet', null, 'Running a dry run …'));
  const leaving = new AbortController();
  const send = async (dryRun) => {
    write.disabled = true;
    try {
      const answer = await restored(of, revision, dryRun, leaving.signal);
      if (!dryRun) return node.close();
      replace(shown, answer.warnings.map((text) => h('p.warning', null, text)), h('h3', null, 'This would change'),
        showDiff(current ? shownText(current) : '', shownText(answer.object)));
      write.disabled = false;
      return write.focus();
    } catch (error) {
      return leaving.signal.aborted || replace(shown, failure(error));
    }
  };
  const write = button(verb, () => send(false), { id: 'restore-now', disabled: true }, 'button.primary');
  const node = dialog('dialog.wide', `${verb} ${of.name} ${revision === '0' ? 'in its last state' : `as of revision ${revision}`}?`,
    h('p.quiet', null, current ? 'Its identity, finalizers, owners and status stay the same. Validation and admission handle it as an update.'
      : 'The object gets a new uid. References to owners that no longer exist are removed.'),
    shown, h('div.buttons', null, button('Cancel', () => node.close(), { autofocus: true }), write));
  node.addEventListener('close', () => leaving.abort());
  send(true);
}
