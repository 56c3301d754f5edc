// Who owns an object, up to the last owner, and what it owns.

import { h, replace, append, mark } from './dom.js';
import { getJson, query } from './http.js';
import { groupVersion, objectLink, pathOf, resourceOf, resources } from './discovery.js';

const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
const DEEPEST = 8;
// How many resources are asked at once, and how many objects of each are looked at.
const AT_ONCE = 6;
const PAGE = 1000;

export async function tree(kind, object, into, signal) {
  const up = h('div'), down = h('div', null, h('p.quiet', null, 'Looking through what is served …'));
  replace(into, h('h3', null, 'Owners'), up, h('h3', null, 'Dependents'), down);
  replace(up, await owners(object, signal, 0) ?? h('p.quiet', null, 'None: nothing owns it.'));
  const { children, skipped } = await dependents(kind, object, signal);
  if (signal.aborted) return;
  replace(down, children.length ? shown(children, object.metadata.uid, 0) : h('p.quiet', null, 'None.'));
  if (skipped.length) append(down, [h('p.quiet', { title: skipped.join('\n') }, `${skipped.length} resources could not be looked through, or only in part.`)]);
}

async function owners(object, signal, depth) {
  const references = object.metadata.ownerReferences ?? [];
  if (!references.length || depth >= DEEPEST) return undefined;
  return h('ul.tree', null, await Promise.all(references.map(async (reference) => {
    const kind = await resourceOf(reference.apiVersion, reference.kind);
    const label = `${reference.kind}/${reference.name}`;
    if (!kind) return h('li', null, label, ' ', mark(false, 'its kind is not served'));
    const namespace = kind.namespaced ? object.metadata.namespace : '';
    const link = h('a', { href: objectLink(kind, namespace, reference.name) }, label);
    try {
      const owner = await getJson(pathOf(kind, namespace, reference.name), { accept: METADATA, signal });
      if (owner.metadata.uid !== reference.uid) return h('li', null, link, ' ', mark(false, 'another object of this name'));
      return h('li', null, link, reference.controller && h('span.quiet', null, ' controller'), await owners(owner, signal, depth + 1));
    } catch (error) {
      return h('li', null, link, ' ', mark(false, error.code === 404 ? 'is gone' : error.message));
    }
  })));
}

// Everything that could be owned by it: what has an owner, in its namespace or, of a cluster-scoped one, anywhere.
async function dependents(kind, object, signal) {
  const places = (await resources()).filter((one) => one.preferred && one.verbs.includes('list') && (one.namespaced || !kind.namespaced));
  const children = [], skipped = [];
  const waiting = [...places];
  const look = async () => {
    for (let one = waiting.shift(); one && !signal.aborted; one = waiting.shift()) {
      try {
        const list = await getJson(pathOf(one, object.metadata.namespace) + query({ limit: PAGE }), { accept: METADATA_LIST, signal });
        if (list.metadata?.continue) skipped.push(`${groupVersion(one)} ${one.name}: more than ${PAGE}`);
        for (const { metadata } of list.items ?? []) if (metadata.ownerReferences) children.push({ kind: one, metadata });
      } catch (error) {
        if (!signal.aborted) skipped.push(`${groupVersion(one)} ${one.name}: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, look));
  const owned = (uid, depth) => depth < DEEPEST && children.some((child) => isOwned(child, uid));
  return { children: owned(object.metadata.uid, 0) ? children : [], skipped };
}

function isOwned({ metadata }, uid) {
  return metadata.ownerReferences.some((reference) => reference.uid === uid);
}

function shown(children, uid, depth) {
  const own = children.filter((child) => isOwned(child, uid));
  if (!own.length || depth >= DEEPEST) return null;
  return h('ul.tree', null, own.map(({ kind, metadata }) => h('li', null,
    h('a', { href: objectLink(kind, metadata.namespace, metadata.name) }, `${kind.kind}/${metadata.name}`), shown(children, metadata.uid, depth + 1))));
}
