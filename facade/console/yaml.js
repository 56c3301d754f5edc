// Prints an object as YAML, as kubectl does. The server parses YAML.

const PLAIN = /^[A-Za-z_/][\w./@%+=()$: -]*$/;
const MAPPING = /:( |$)/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;
// Characters that a block scalar cannot contain.
const UNPRINTABLE = /[^\n\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;

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

// The text of an editor: the object without the fields that the server sets.
export function editable(object) {
  const { apiVersion, kind, metadata, status, ...rest } = object;
  const { managedFields, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, selfLink, ...kept } = metadata;
  return { apiVersion, kind, metadata: kept, ...rest };
}
