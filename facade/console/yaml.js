// Prints an object as YAML, as kubectl does, without values of a Secret that the user has not asked for. The server parses YAML.

const PLAIN = /^[A-Za-z_/][\w./@%+=()$: -]*$/;
const MAPPING = /:( |$)/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;
// Characters that a block scalar cannot contain.
const UNPRINTABLE = /[^\n\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
// Differs with each load of the page, so that a shown mark does not identify a value.
const SALT = Math.random().toString();
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

// In quotes. YAML escapes some characters that JSON does not.
function quoted(value) {
  return JSON.stringify(value).replace(/[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return `\\${code[2] ? 'u' : 'x'}${code}`;
  });
}

// A text as YAML; its lines after the first have this indent.
export function text(value, indent) {
  if (PLAIN.test(value) && !MAPPING.test(value) && !RESERVED.test(value) && !value.endsWith(' ')) return value;
  const lines = value.split('\n');
  if (lines.length < 2 || UNPRINTABLE.test(value) || /^\s/.test(value) || lines.some((line) => /[ \t]$/.test(line))) return quoted(value);
  const body = value.replace(/\n+$/, '');
  if (!body) return quoted(value);
  const ends = value.length - body.length;
  const style = ends === 0 ? '|-' : ends === 1 ? '|' : '|+';
  const shown = ends > 1 ? value.slice(0, -1) : body;
  return `${style}\n${shown.split('\n').map((line) => (line ? indent + line : '')).join('\n')}`;
}

function isEmpty(value) {
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

function lines(value, indent, out) {
  const inner = `${indent}  `;
  const put = (start, item, deeper) => {
    if (item === null || typeof item !== 'object') out.push(`${start} ${typeof item === 'string' ? text(item, inner) : item}`);
    else if (isEmpty(item)) out.push(`${start} ${Array.isArray(item) ? '[]' : '{}'}`);
    else deeper(item);
  };
  if (Array.isArray(value)) {
    for (const item of value) {
      put(`${indent}-`, item, (nested) => {
        const from = out.length;
        lines(nested, inner, out);
        out[from] = `${indent}- ${out[from].slice(inner.length)}`;
      });
    }
  } else {
    for (const [key, item] of Object.entries(value)) {
      const name = `${indent}${text(key, inner)}:`;
      put(name, item, (nested) => {
        out.push(name);
        lines(nested, Array.isArray(nested) ? indent : inner, out);
      });
    }
  }
}

export function printYaml(value) {
  const out = [];
  lines(value, '', out);
  return `${out.join('\n')}\n`;
}

// Metadata without the copy of the object that kubectl apply stores in an annotation.
export function withoutLastApplied({ annotations, ...rest }) {
  const { [LAST_APPLIED]: copy, ...others } = annotations ?? {};
  return Object.keys(others).length ? { ...rest, annotations: others } : rest;
}

// The text of an editor: the object without the fields that the server sets.
export function editable(object) {
  const { apiVersion, kind, metadata, status, ...rest } = object;
  const { managedFields, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, selfLink, ...kept } = metadata;
  return { apiVersion, kind, metadata: withoutLastApplied(kept), ...rest };
}

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
