// Values of Secrets: hidden until the user asks for them, and shown decoded.

// Differs with each load of the page, so that a shown mark does not identify a value.
const SALT = Math.random().toString();
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export function isSecret({ apiVersion, kind } = {}) {
  return apiVersion === 'v1' && kind === 'Secret';
}

export function decode(base64) {
  const octets = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  try {
    return { size: octets.length, text: new TextDecoder('utf-8', { fatal: true }).decode(octets) };
  } catch {
    return { size: octets.length };
  }
}

// The same value has the same mark, so that a comparison shows that a value changed.
function mask(value) {
  let hash = 0;
  for (const character of SALT + value) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
  return `hidden (${(hash & 0xffff).toString(16).padStart(4, '0')})`;
}

const masked = (map) => map && Object.fromEntries(Object.entries(map).map(([key, value]) => [key, mask(value)]));

// A Secret without its values; other objects are returned unchanged.
export function hidden(object) {
  if (!isSecret(object)) return object;
  const { data, stringData, metadata, ...rest } = object;
  const { annotations } = metadata;
  const kept = annotations?.[LAST_APPLIED] ? { ...metadata, annotations: { ...annotations, [LAST_APPLIED]: mask(annotations[LAST_APPLIED]) } } : metadata;
  return { apiVersion: rest.apiVersion, kind: rest.kind, metadata: kept, ...(data && { data: masked(data) }), ...(stringData && { stringData: masked(stringData) }), ...rest };
}
