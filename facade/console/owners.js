// Owners: the managers of an object's fields, the objects that own it, and the objects that it owns.

import { h, mark, table } from './dom.js';
import { forEach, getJson, query, METADATA, METADATA_LIST } from './http.js';
import { groupVersion, objectLink, pathOf, resourceOf } from './discovery.js';
import { listable } from './rights.js';
import { since } from './time.js';

const MAX_DEPTH = 8;
// Objects of each resource that are searched for dependents.
const PAGE = 1000;

// The paths of a field set, such as `.spec.replicas`.
function paths(set, prefix = '') {
  return Object.entries(set ?? {}).flatMap(([key, below]) => {
    if (key === '.') return [prefix || '.'];
    const path = prefix + step(key);
    const nested = paths(below, path);
    return nested.length ? nested : [path];
  });
}

function step(key) {
  const [kind, rest] = [key.slice(0, 1), key.slice(2)];
  if (kind === 'f') return /^[\w-]+$/.test(rest) ? `.${rest}` : `[${JSON.stringify(rest)}]`;
  if (kind === 'k') return `[${Object.entries(JSON.parse(rest)).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
  return kind === 'v' ? `[=${rest}]` : `[${rest}]`;
}

export function fieldOwners(object) {
  const entries = object.metadata.managedFields ?? [];
  const owners = new Map();
  entries.forEach((entry) => {
    for (const path of paths(entry.fieldsV1)) owners.set(path, [...(owners.get(path) ?? []), entry.manager]);
  });
  const managers = entries.map((entry) => [
    h('strong', null, entry.manager), entry.operation, entry.subresource ?? '', entry.apiVersion,
    since(entry.time, ' ago'), String(paths(entry.fieldsV1).length),
  ]);
  const fields = [...owners].sort(([a], [b]) => a.localeCompare(b)).map(([path, by]) => [h('code', null, path), by.join(', ')]);
  return h('div', null,
    table('Managers', ['Manager', 'Operation', 'Subresource', 'Version', 'When', 'Fields'], managers),
    table('Fields', ['Field', 'Owned by'], fields));
}

// The tree of owners; `undefined` without any.
export async function owners(object, signal, depth = 0) {
  const references = object.metadata.ownerReferences ?? [];
  if (!references.length || depth >= MAX_DEPTH) return undefined;
  return h('ul.tree', null, await Promise.all(references.map(async (reference) => {
    const kind = await resourceOf(reference.apiVersion, reference.kind);
    const label = `${reference.kind}/${reference.name}`;
    if (!kind) return h('li', null, label, ' ', mark(false, 'this kind is not served'));
    const namespace = kind.namespaced ? object.metadata.namespace : '';
    const link = h('a', { href: objectLink(kind, namespace, reference.name) }, label);
    try {
      const owner = await getJson(pathOf(kind, namespace, reference.name), { accept: METADATA, signal });
      if (owner.metadata.uid !== reference.uid) return h('li', null, link, ' ', mark(false, 'another object of this name'));
      return h('li', null, link, reference.controller && h('span.quiet', null, ' controller'), await owners(owner, signal, depth + 1));
    } catch (error) {
      return h('li', null, link, ' ', mark(false, error.code === 404 ? 'deleted' : error.message));
    }
  })));
}

// The tree of dependents: of a namespaced object in its namespace, of a cluster-scoped one everywhere.
export async function dependents(kind, object, signal) {
  const places = (await listable(object.metadata.namespace)).filter((one) => one.namespaced || !kind.namespaced);
  const children = [], skipped = [];
  await forEach(places, signal, async (one) => {
    try {
      const list = await getJson(pathOf(one, object.metadata.namespace) + query({ limit: PAGE }), { accept: METADATA_LIST, signal });
      if (list.metadata?.continue) skipped.push(`${groupVersion(one)} ${one.name}: more than ${PAGE} objects`);
      for (const { metadata } of list.items ?? []) if (metadata.ownerReferences) children.push({ kind: one, metadata });
    } catch (error) {
      if (!signal.aborted) skipped.push(`${groupVersion(one)} ${one.name}: ${error.message}`);
    }
  });
  return [shown(children, object.metadata.uid, 0) ?? h('p.quiet', null, 'No dependents.'),
    skipped.length ? h('p.quiet', { title: skipped.join('\n') }, `${skipped.length} resources were not searched, or only in part.`) : null];
}

function shown(children, uid, depth) {
  const own = children.filter(({ metadata }) => metadata.ownerReferences.some((reference) => reference.uid === uid));
  if (!own.length || depth >= MAX_DEPTH) return undefined;
  return h('ul.tree', null, own.map(({ kind, metadata }) => h('li', null,
    h('a', { href: objectLink(kind, metadata.namespace, metadata.name) }, `${kind.kind}/${metadata.name}`), shown(children, metadata.uid, depth + 1))));
}
