// The start page: all kinds by group, with the number of their objects, and favorites.

import { button, h, replace, section } from './dom.js';
import { METADATA_LIST, forEach, getJson } from './http.js';
import { fullName, listLink, pathOf } from './discovery.js';
import { filterField } from './grid.js';
import { pageKeys } from './keys.js';
import { askForNamespace, chosen, inNamespace } from './namespace.js';
import { openNamespaces } from './palettes.js';
import { listable } from './rights.js';
import { load, save } from './session.js';

export async function kinds({ main, signal }) {
  const all = await listable(chosen());
  if (signal.aborted) return;
  const page = new Kinds(all, signal);
  replace(main, page.element);
  pageKeys({ f: ['Filter kinds', () => page.filter.focus()], r: ['Count again', () => page.count()] });
  page.show();
  await page.count();
}

// The number of objects without fetching them: one, and how many remain.
async function countOf(kind, namespace, signal) {
  const { items, metadata } = await getJson(`${pathOf(kind, namespace)}?limit=1`, { accept: METADATA_LIST, signal });
  return items.length + (metadata?.remainingItemCount ?? 0);
}

class Kinds {
  constructor(all, signal) {
    const names = all.map((one) => one.kind).sort();
    Object.assign(this, { all, signal, counts: new Map(), rows: new Map(), ambiguous: names.filter((name, at) => name === names[at + 1]) });
    this.filter = filterField(() => this.show(), '', 'kinds');
    this.used = h('input', { type: 'checkbox', id: 'used', checked: load('used-kinds', false), onchange: () => { save('used-kinds', this.used.checked); this.show(); } });
    this.offer = h('div');
    this.groups = h('div.kinds', { id: 'kinds' });
    this.element = h('div.page', null,
      h('div.bar', null, h('h1', null, 'Objects'), h('span.quiet', null, inNamespace(chosen())), h('span.grow'), this.filter,
        h('label.check', { for: 'used' }, this.used, 'Only kinds with objects')),
      this.offer, this.groups);
  }

  // Counts favorites first; kinds that may not be listed are left out.
  async count() {
    const names = favorites();
    const order = [...this.all].sort((a, b) => names.includes(fullName(b)) - names.includes(fullName(a)));
    await forEach(order, this.signal, async (kind) => {
      this.counts.set(kind, await countOf(kind, chosen(), this.signal).catch((error) => (error.code === 403 ? 'refused' : '–')));
      this.update(kind);
    });
    const isBare = this.all.every((kind) => !kind.namespaced || (chosen() && this.counts.get(kind) === 0) || this.counts.get(kind) === 'refused');
    if (!this.signal.aborted) replace(this.offer, isBare && (chosen() ? nothingHere() : askForNamespace('objects')));
  }

  isShown(kind) {
    const count = this.counts.get(kind);
    const text = `${kind.kind} ${fullName(kind)} ${kind.shortNames.join(' ')}`.toLowerCase();
    return count !== 'refused' && !(this.used.checked && count === 0) && text.includes(this.filter.value.toLowerCase());
  }

  show() {
    const focused = document.activeElement?.id;
    const shown = this.all.filter((kind) => this.isShown(kind));
    this.rows.clear();
    const panels = [['Favorites', shown.filter(isFavorite), 'starred'], ...grouped(shown.filter((kind) => kind.namespaced || !chosen())),
      ['Not in a namespace', shown.filter((kind) => !kind.namespaced && chosen())]];
    replace(this.groups, panels.map(([title, list, at]) => list.length > 0 && section(title, h('ul', null, list.map((kind) => this.row(kind, at))))));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  // Shows a count in the rows that exist: a new row under the pointer would lose a click.
  update(kind) {
    const count = this.counts.get(kind);
    const isShown = this.isShown(kind);
    const rows = this.rows.get(kind) ?? [];
    if (!rows.length && isShown) this.show();
    for (const row of rows) {
      if (isShown) {
        row.classList.toggle('empty', count === 0);
        row.lastChild.textContent = count.toLocaleString();
      } else if (row.parentNode?.childElementCount === 1) row.closest('section').remove();
      else row.remove();
    }
    if (!isShown) this.rows.delete(kind);
  }

  row(kind, at = 'all') {
    const count = this.counts.get(kind);
    const starred = isFavorite(kind);
    const name = fullName(kind);
    const star = h('button.plain.star', { type: 'button', id: `${at}-${name}`, 'aria-pressed': String(starred), 'aria-label': `Favorite ${name}`, title: starred ? 'Remove from favorites' : 'Add to favorites',
      onclick: () => { toggleFavorite(kind); this.show(); } }, starred ? '★' : '☆');
    const row = h(count === 0 ? 'li.empty' : 'li', { 'data-kind': name }, star, h('a', { href: listLink(kind), title: name }, kind.kind, this.ambiguous.includes(kind.kind) && h('span.quiet', null, ` ${kind.group || 'core'}`)),
      h('span.quiet', null, count === undefined ? '…' : count.toLocaleString()));
    this.rows.set(kind, [...this.rows.get(kind) ?? [], row]);
    return row;
  }
}

function nothingHere() {
  return h('div.panel.offer', null, h('p', null, `There is nothing in namespace ${chosen()} that you may see.`), button('Choose another namespace', openNamespaces, null, 'button.primary'));
}

const ORDER = ['Workloads', 'Configuration', 'Network', 'Access', 'Storage', 'Cluster'];
// By API group; kinds of the core group follow below.
const BUILT_IN = {
  apps: 'Workloads', batch: 'Workloads', autoscaling: 'Workloads', policy: 'Workloads', 'resource.k8s.io': 'Workloads', 'scheduling.k8s.io': 'Configuration',
  'networking.k8s.io': 'Network', 'discovery.k8s.io': 'Network', 'rbac.authorization.k8s.io': 'Access', 'certificates.k8s.io': 'Access', 'storage.k8s.io': 'Storage', 'storagemigration.k8s.io': 'Storage',
  'node.k8s.io': 'Configuration', 'coordination.k8s.io': 'Cluster', 'events.k8s.io': 'Cluster', 'admissionregistration.k8s.io': 'Cluster', 'apiregistration.k8s.io': 'Cluster',
  'apiextensions.k8s.io': 'Cluster', 'flowcontrol.apiserver.k8s.io': 'Cluster', 'internal.apiserver.k8s.io': 'Cluster',
};
const CORE = {
  pods: 'Workloads', podtemplates: 'Workloads', replicationcontrollers: 'Workloads', configmaps: 'Configuration', secrets: 'Configuration', limitranges: 'Configuration', resourcequotas: 'Configuration',
  services: 'Network', endpoints: 'Network', serviceaccounts: 'Access', persistentvolumes: 'Storage', persistentvolumeclaims: 'Storage',
};

function groupOf({ group, name }) {
  return group ? BUILT_IN[group] ?? group : CORE[name] ?? 'Cluster';
}

// Built-in groups in their order, then custom resources by API group; [title, kinds] each.
function grouped(kinds) {
  const groups = Object.groupBy(kinds, groupOf);
  const custom = Object.keys(groups).filter((name) => !ORDER.includes(name)).sort();
  return [...ORDER.slice(0, -1), ...custom, 'Cluster'].filter((name) => groups[name]).map((name) => [name === 'Cluster' ? 'Other' : name, groups[name].sort((a, b) => a.kind.localeCompare(b.kind))]);
}

function favorites() {
  return load('favorites', []);
}

export function isFavorite(kind) {
  return favorites().includes(fullName(kind));
}

export function toggleFavorite(kind) {
  const name = fullName(kind);
  save('favorites', isFavorite(kind) ? favorites().filter((one) => one !== name) : [...favorites(), name]);
}
