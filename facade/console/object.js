// One object: a summary, its YAML, an editor, the owners of its fields and its history.

import { button, crumbs, h, replace, failure } from './dom.js';
import { groupVersion, listLink, pathOf, resource } from './discovery.js';
import { followObjects } from './watch.js';
import { pageKeys } from './keys.js';
import { go, leftAt, setQuery } from './router.js';
import { isSuspendable, removeAll, scale, suspend } from './actions.js';
import { editable, printYaml, isSecret } from './yaml.js';
import { Editor } from './editor.js';
import { fieldOwners } from './owners.js';
import { history } from './history.js';
import { may } from './rights.js';
import { summary } from './summary.js';
import { yamlView } from './yaml_view.js';

// Tabs of an object: name, permission and content.
const TABS = [
  ['summary', 'Summary', undefined, summary],
  ['yaml', 'YAML', undefined, yamlView],
  ['edit', 'Edit', 'patch', (view, into) => view.showEditor(into)],
  ['fields', 'Field owners', undefined, (view, into, signal) => {
    replace(into, fieldOwners(view.object));
    view.changes.addEventListener('change', () => replace(into, fieldOwners(view.object)), { signal });
  }],
  ['history', 'History', 'history', history],
];

// The rights of the user on an object, by the names of actions.
async function rightsOn(kind, namespace, name) {
  const ask = async (verb, isOffered = true, subresource = '') => isOffered && may(verb, kind, namespace, subresource, name);
  const asked = { patch: ask('patch', kind.verbs.includes('patch')), delete: ask('delete', kind.verbs.includes('delete')), scale: ask('patch', kind.subresources.includes('scale'), 'scale'),
    history: ask('history'), update: ask('update', kind.verbs.includes('update')), create: may('create', kind, namespace) };
  return Object.fromEntries(await Promise.all(Object.entries(asked).map(async ([key, answer]) => [key, await answer])));
}

export async function object({ main, parameters, query, signal }) {
  const kind = await resource(parameters);
  const namespace = parameters.namespace === '-' ? '' : parameters.namespace;
  const rights = await rightsOn(kind, namespace, parameters.name);
  if (signal.aborted) return;
  const view = new ObjectView({ kind, namespace, rights, signal, name: parameters.name, tab: query.get('tab') ?? 'summary' });
  replace(main, view.element);
  pageKeys({
    ...Object.fromEntries(view.tabsOf(true).map(([id, name], at) => [`${at + 1}`, [name, () => view.choose(id)]])),
    ...(rights.patch && { e: ['Edit', () => { view.choose('edit'); view.editor.focus(); }] }),
    Escape: ['Back to the list', () => go(leftAt(`objects/${parameters.group}/${parameters.version}/${kind.name}`) ?? listLink(kind))],
  });
  view.start();
}

class ObjectView {
  constructor({ kind, namespace, rights, signal, name, tab }) {
    Object.assign(this, { kind, namespace, rights, signal, name, tab, revealed: new Set(), showsValues: false, isWatched: kind.verbs.includes('watch') });
    this.path = pathOf(kind, namespace, name);
    // Notifies of another state of the object.
    this.changes = new EventTarget();
    this.state = h('span.state', { id: 'state' });
    this.problem = h('div');
    this.content = h('div', { role: 'tabpanel', id: 'panel', 'aria-labelledby': `tab-${tab}` });
    this.tabs = h('div.tabs', { role: 'tablist', 'aria-label': 'Parts of the object' });
    this.actions = h('span.actions');
    this.editor = new Editor(this.path);
    this.element = h('div.page', null,
      crumbs(['#/objects', 'Objects'], [listLink(kind), kind.kind], namespace && [listLink(kind, namespace), namespace]),
      h('div.bar', null, h('h1', null, name), h('span.quiet', null, `${kind.kind} · ${groupVersion(kind)}`), this.state, h('span.grow'), this.actions),
      this.problem, this.tabs, this.content);
  }

  start() {
    const failed = (error) => { this.state.textContent = ''; replace(this.problem, failure(error)); };
    followObjects(pathOf(this.kind, this.namespace), { fieldSelector: `metadata.name=${this.name}` }, this.signal, (found) => {
      const [newest] = found.values();
      if (newest) this.show(newest);
      else this.gone();
    }, failed, this.isWatched);
  }

  show(newest) {
    const first = !this.isThere;
    this.isThere = true;
    this.object = { apiVersion: groupVersion(this.kind), kind: this.kind.kind, ...newest };
    const { metadata } = this.object;
    replace(this.problem);
    this.state.textContent = metadata.deletionTimestamp ? '● Being deleted' : this.isWatched ? '● Live' : '';
    this.state.className = 'state live';
    this.editor.offer(printYaml(editable(this.object)), this.object);
    this.showActions();
    if (first) this.choose(this.tab);
    else this.changes.dispatchEvent(new Event('change'));
  }

  showActions() {
    const isSuspended = this.object.spec?.suspend === true;
    const attempt = (run) => () => run().catch((error) => replace(this.problem, failure(error)));
    replace(this.actions,
      this.rights.scale && button('Scale', attempt(() => scale(this.path, this.name)), { id: 'scale' }),
      this.rights.patch && isSuspendable(this.kind) && button(isSuspended ? 'Resume' : 'Suspend', attempt(() => suspend(this.path, !isSuspended)), { id: 'suspend' }),
      this.rights.delete && button('Delete', () => this.remove(), { id: 'delete' }, 'button.danger'));
  }

  gone() {
    this.state.textContent = this.object ? '○ Deleted' : '○ Not found';
    this.state.className = 'state lost';
    this.isThere = false;
    replace(this.problem);
    replace(this.actions);
    if (!this.object && !this.leave) this.choose('history');
    this.changes.dispatchEvent(new Event('change'));
  }

  // An object that is gone has its history only.
  tabsOf(isThere) {
    return TABS.filter(([id, , right]) => (isThere || id === 'history') && (!right || this.rights[right]));
  }

  choose(id) {
    if (!this.object && this.isThere !== false) return;
    const tabs = this.tabsOf(Boolean(this.object));
    const [chosen, , , show] = tabs.find(([known]) => known === id) ?? tabs[0] ?? [];
    if (!chosen) return;
    this.tab = chosen;
    setQuery({ tab: chosen === 'summary' ? '' : chosen });
    replace(this.tabs, tabs.map(([known, name]) => h('button.tab', {
      type: 'button', role: 'tab', id: `tab-${known}`, 'aria-controls': 'panel', 'aria-selected': String(known === chosen), onclick: () => this.choose(known),
    }, name)));
    document.getElementById(`tab-${chosen}`)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    this.content.setAttribute('aria-labelledby', `tab-${chosen}`);
    this.leave?.abort();
    this.leave = new AbortController();
    show(this, this.content, AbortSignal.any([this.signal, this.leave.signal]));
  }

  // The text of a Secret holds its values.
  showEditor(into) {
    if (!isSecret(this.object) || this.showsValues) return replace(into, this.editor.element);
    const show = () => { this.showsValues = true; this.showEditor(into); };
    return replace(into, h('div.panel', null, h('p', null, 'The editor shows the values of this Secret, encoded as base64.'), button('Show values and edit', show, { id: 'show-editor' }, 'button.primary')));
  }

  async remove() {
    const { name, namespace } = this;
    const errors = await removeAll(this.kind, [{ name, namespace, id: this.object.metadata.uid }]);
    if (errors.length) replace(this.problem, errors.map(failure));
  }
}
