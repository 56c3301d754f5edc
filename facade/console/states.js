// Past states of objects, from the control service. They require the verb `history` on the resource.

import { failure, h } from './dom.js';
import { ApiError, call, jsonLines, parseJson } from './http.js';
import { withoutLastApplied } from './yaml.js';

const HISTORY = 'portico.history.v1.History';
// Fields that every write sets.
const OWN = ['managedFields', 'resourceVersion', 'uid', 'creationTimestamp', 'generation'];

export const CREATED = 'CHANGE_CREATED', DELETED = 'CHANGE_DELETED';

export function target({ group, version, name, namespaced }, namespace, object = '') {
  return { group, version, resource: name, namespace: namespaced ? namespace ?? '' : '', name: object };
}

// An object, which messages carry as base64.
function decoded(base64) {
  return base64 && parseJson(new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))));
}

// { states, more }, newest first; only states older than `before`.
export function states(of, { before, limit }, signal) {
  return call(`${HISTORY}/States`, { target: of, before, limit }, { signal });
}

// The object as it was at the revision of a state.
export async function stateAt(of, revision, signal) {
  const { states: [found] } = await call(`${HISTORY}/States`, { target: of, before: String(Number(revision) + 1), limit: 1, objects: true }, { signal });
  if (found?.revision !== revision) throw new Error(`Revision ${revision} is no longer kept.`);
  if (found.unreadable) throw new Error(`Revision ${revision} cannot be read: ${found.unreadable}`);
  return decoded(found.object);
}

// { object, created, revision, warnings }; of a deleted object revision 0 is its last state.
export async function restored(of, revision, dryRun, signal) {
  const answer = await call(`${HISTORY}/Restore`, { target: of, revision, dryRun }, { signal });
  return { ...answer, object: decoded(answer.object) };
}

// The objects as of { revision } or { time }, in parts of { revision, objects, unreadable }.
export async function* past(of, at, signal) {
  const request = { method: 'POST', type: 'application/json', body: JSON.stringify({ target: of, ...at }), signal };
  for await (const { result, error } of jsonLines(`/grpc/${HISTORY}/List`, request)) {
    if (error) throw new ApiError(error.code ?? 500, error);
    yield { ...result, objects: result.objects.map(decoded) };
  }
}

// An object without the fields that every write sets, for comparisons.
export function comparable(object) {
  if (!object) return object;
  const { apiVersion, kind, metadata, ...rest } = object;
  return { apiVersion, kind, metadata: withoutLastApplied(Object.fromEntries(Object.entries(metadata).filter(([name]) => !OWN.includes(name)))), ...rest };
}

// An error of the control service. A time before the retention is no failure; a namespace that was created later has its own message.
export function historyFailure(error) {
  return error.code !== 410 || error.message.includes('begins') ? failure(error) : h('p.warning', null, 'States from before the retention are no longer kept. ', RETENTION);
}

// Shown where a past state is missing.
export const RETENTION = 'The flag --history-retention of the control service sets how long states are kept, for example 5m,configmaps=720h,*=24h. The default is five minutes.';
