// One object: its YAML and an editor, who owns its fields, its events, its owners and dependents, its history.

import { h, replace, failure } from './dom.js';
import { fetchApi } from './http.js';
import { groupVersion, listLink, pathOf, resource } from './discovery.js';
import { followObjects } from './watch.js';
import { pageKeys } from './keys.js';
import { go, leftAt, setQuery } from './router.js';
import { age } from './time.js';
import { editable, printYaml } from './yaml.js';
import { Editor } from './editor.js';
import { fieldOwners } from './owners.js';
import { events } from './events.js';
import { tree } from './tree.js';
import { history } from './history.js';

// What is known of an object besides it, each behind a tab.
const TABS = [
  ['yaml', 'YAML', (view, into) => replace(into, h('pre.code', { tabindex: '0', 'aria-label': 'YAML' }, printYaml(view.withoutManagers())))],
  ['edit', 'Edit', (view, into) => replace(into, view.editor.element)],
  ['fields', 'Field owners', (view, into) => replace(into, fieldOwners(view.object))],
  ['events', 'Events', (view, into, signal) => events(view.object, into, signal)],
  ['tree', 'Owners and dependents', (view, into, signal) => tree(view.kind, view.object, into, signal)],
  ['history', 'History', history],
];
// What there is of an object that is gone.
const PAST = TABS.filter(([id]) => id === 'history');
// Tabs that show the newest state of the object as it changes.
const LIVE = ['yaml', 'fields'];

export async function object({ main, parameters, query, signal }) {
  const kind = await resource(parameters.group === 'core' ? '' : parameters.group, parameters.version, parameters.resource);
  if (signal.aborted) return;
  const namespace = parameters.namespace === '-' ? '' : parameters.namespace;
  const view = new ObjectView(kind, namespace, parameters.name, query.get('tab') ?? 'yaml', signal);
  replace(main, view.element);
  pageKeys({
    ...Object.fromEntries(TABS.map(([id, name], at) => [`${at + 1}`, [name, () => view.choose(id)]])),
    e: ['Edit', () => { view.choose('edit'); view.editor.focus(); }],
    Escape: ['Back to the list', () => go(leftAt(`objects/${parameters.group}/${parameters.version}/${kind.name}`) ?? listLink(kind, namespace))],
  });
  view.start();
}

class ObjectView {
  constructor(kind, namespace, name, tab, signal) {
    Object.assign(this, { kind, namespace, name, tab, signal });
    this.path = pathOf(kind, namespace, name);
    // Says that the object has another state.
    this.changes = new EventTarget();
    this.state = h('span.state', { id: 'state' });
    this.summary = h('p.quiet');
    this.problem = h('div');
    this.content = h('div', { role: 'tabpanel', id: 'panel', 'aria-labelledby': `tab-${tab}` });
    this.tabs = h('div.tabs', { role: 'tablist', 'aria-label': 'Parts of the object' });
    this.editor = new Editor(this.path);
    this.deleting = h('button.danger', { type: 'button', hidden: true, onclick: () => this.remove() }, 'Delete');
    this.element = h('div.page', null,
      h('nav.crumbs', { 'aria-label': 'Place' }, h('a', { href: '#/objects' }, 'Objects'), ' / ',
        h('a', { href: listLink(kind, namespace) }, kind.kind), namespace && [' / ', namespace]),
      h('div.bar', null, h('h1', null, name), h('span.quiet', null, `${kind.kind} · ${groupVersion(kind)}`), this.state, h('span.grow'),
        kind.verbs.includes('delete') && this.deleting),
      this.summary, this.problem, this.tabs, this.content);
  }

  start() {
    const failed = (error) => { this.state.textContent = ''; replace(this.problem, failure(error)); };
    followObjects(pathOf(this.kind, this.namespace), { fieldSelector: `metadata.name=${this.name}` }, this.signal, (found) => {
      const [newest] = found.values();
      if (newest) this.show(newest);
      else this.gone();
    }, failed);
  }

  show(newest) {
    const first = !this.isThere;
    this.isThere = true;
    this.deleting.hidden = false;
    this.object = { apiVersion: groupVersion(this.kind), kind: this.kind.kind, ...newest };
    const { metadata } = this.object;
    replace(this.problem);
    this.state.textContent = metadata.deletionTimestamp ? '● Being deleted' : '● Live';
    this.state.className = 'state live';
    this.summary.textContent = [`revision ${metadata.resourceVersion}`, metadata.generation && `generation ${metadata.generation}`,
      `created ${age(metadata.creationTimestamp)} ago`, metadata.finalizers && `finalizers ${metadata.finalizers.join(', ')}`].filter(Boolean).join(' · ');
    this.editor.offer(printYaml(editable(this.object)), this.object);
    if (first) this.choose(this.tab);
    else if (LIVE.includes(this.tab)) this.draw();
    if (!first) this.changes.dispatchEvent(new Event('change'));
  }

  gone() {
    this.state.textContent = this.object ? '○ Deleted' : '○ Not there';
    this.state.className = 'state lost';
    this.isThere = false;
    this.deleting.hidden = true;
    if (!this.object && !this.leave) this.choose('history');
    this.changes.dispatchEvent(new Event('change'));
  }

  withoutManagers() {
    const { managedFields, ...metadata } = this.object.metadata;
    return { ...this.object, metadata };
  }

  choose(id) {
    if (!this.object && this.isThere !== false) return;
    const tabs = this.object ? TABS : PAST;
    this.tab = tabs.some(([known]) => known === id) ? id : tabs[0][0];
    setQuery({ tab: this.tab === 'yaml' ? '' : this.tab });
    replace(this.tabs, tabs.map(([known, name]) => h('button.tab', {
      type: 'button', role: 'tab', id: `tab-${known}`, 'aria-controls': 'panel', 'aria-selected': String(known === this.tab), onclick: () => this.choose(known),
    }, name)));
    this.content.setAttribute('aria-labelledby', `tab-${this.tab}`);
    this.leave?.abort();
    this.leave = new AbortController();
    this.draw();
  }

  draw() {
    const shown = this.content.querySelector('.code')?.scrollTop;
    TABS.find(([id]) => id === this.tab)[2](this, this.content, AbortSignal.any([this.signal, this.leave.signal]));
    if (shown) this.content.querySelector('.code').scrollTop = shown;
  }

  remove() {
    const dialog = h('dialog', { 'aria-labelledby': 'delete-title' },
      h('h2', { id: 'delete-title' }, `Delete ${this.name}?`),
      h('p', null, 'What it owns is deleted in the background where a garbage collector runs.'),
      h('form.buttons', { method: 'dialog' },
        h('button', { value: 'no', autofocus: true }, 'Cancel'), h('button.danger', { value: 'yes' }, 'Delete')));
    dialog.addEventListener('close', async () => {
      dialog.remove();
      if (dialog.returnValue !== 'yes') return;
      try {
        const preconditions = { uid: this.object?.metadata.uid };
        await fetchApi(this.path, { method: 'DELETE', type: 'application/json', body: JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions, propagationPolicy: 'Background' }) });
      } catch (error) {
        replace(this.problem, failure(error));
      }
    });
    document.body.append(dialog);
    dialog.showModal();
  }
}
