// The resources that are served, from aggregated discovery, and their paths and links.

import { getJson } from './http.js';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
let known;

// All resources; requested once in a session, and again after `forgetResources`.
export function resources() {
  known ??= load().catch((error) => { known = undefined; throw error; });
  return known;
}

export function forgetResources() {
  known = undefined;
}

async function load() {
  const documents = await Promise.all(['/api', '/apis'].map((path) => getJson(path, { accept: AGGREGATED })));
  const all = [];
  for (const { metadata, versions } of documents.flatMap((document) => document.items ?? [])) {
    // A resource is preferred in the first version that serves it.
    const seen = new Set();
    for (const { version, resources: served, freshness } of versions) {
      for (const one of served ?? []) {
        if (!one.responseKind) continue;
        all.push({
          group: metadata?.name ?? '', version, name: one.resource, kind: one.responseKind.kind, verbs: one.verbs ?? [],
          namespaced: one.scope === 'Namespaced', shortNames: one.shortNames ?? [], preferred: !seen.has(one.resource), stale: freshness === 'Stale',
          subresources: (one.subresources ?? []).map((sub) => sub.subresource),
        });
        seen.add(one.resource);
      }
    }
  }
  return all;
}

// A resource that is not known may be new: they are requested once more.
async function find(isMeant) {
  const found = (await resources()).find(isMeant);
  if (found) return found;
  forgetResources();
  return (await resources()).find(isMeant);
}

// The resource that an address names.
export async function resource({ group: named, version, resource: name }) {
  const group = named === 'core' ? '' : named;
  const found = await find((one) => one.group === group && one.version === version && one.name === name);
  if (!found) throw new Error(`${name} of ${groupVersion({ group, version })} is not served.`);
  return found;
}

// The resource of a kind that an owner reference or an event names.
export async function resourceOf(apiVersion, kind) {
  const [version, group = ''] = apiVersion.split('/').reverse();
  return find((one) => one.kind === kind && one.group === group && one.version === version);
}

export function groupVersion({ group, version }) {
  return group ? `${group}/${version}` : version;
}

// `pods`, or `deployments.apps`.
export function fullName({ group, name }) {
  return group ? `${name}.${group}` : name;
}

export function pathOf({ group, version, name, namespaced }, namespace, object) {
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  const scope = namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${name}${object ? `/${encodeURIComponent(object)}` : ''}`;
}

// The pages of the console for a resource and for one of its objects.
export function listLink({ group, version, name }, namespace) {
  return `#/objects/${group || 'core'}/${version}/${name}${namespace ? `?namespace=${encodeURIComponent(namespace)}` : ''}`;
}

export function objectLink({ group, version, name }, namespace, object) {
  return `#/object/${group || 'core'}/${version}/${name}/${encodeURIComponent(namespace || '-')}/${encodeURIComponent(object)}`;
}

// The page for the objects of a resource as of a time.
export function pastLink({ group, version, name }, namespace, at) {
  return `#/past/${group || 'core'}/${version}/${name}?${new URLSearchParams({ at, ...(namespace ? { namespace } : {}) })}`;
}
