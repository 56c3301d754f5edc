// Owners of an object, up to the topmost, and the objects that it owns.

import { h, mark } from './dom.js';
import { forEach, getJson, query, METADATA, METADATA_LIST } from './http.js';
import { groupVersion, objectLink, pathOf, resourceOf, resources } from './discovery.js';
import { listable } from './rights.js';

const MAX_DEPTH = 8;
// Objects of each resource that are searched for dependents.
const PAGE = 1000;

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
  const served = (await resources()).filter((one) => one.preferred && one.verbs.includes('list') && (one.namespaced || !kind.namespaced));
  const places = await listable(served, object.metadata.namespace);
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
