// A schema as a tree that unfolds on demand, and the page of a kind's schema.

import { h, replace } from './dom.js';
import { getJson, printJson } from './http.js';

const DEEPEST = 30;

function typeOf(schema, resolve) {
  const s = resolve(schema);
  if (s['x-kubernetes-int-or-string']) return 'int or string';
  if (s.type === 'array') return `[]${typeOf(s.items ?? {}, resolve)}`;
  if (s.type === 'object' && s.additionalProperties) return `map of ${typeOf(s.additionalProperties === true ? {} : s.additionalProperties, resolve)}`;
  return [s.type ?? 'any', s.format && `(${s.format})`].filter(Boolean).join(' ');
}

function constraints(s) {
  const simple = ['default', 'enum', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'multipleOf'];
  const out = simple.filter((name) => s[name] !== undefined && !(name === 'default' && typeof s.default === 'object' && !Object.keys(s.default ?? {}).length))
    .map((name) => `${name} ${printJson(s[name])}`);
  if (s.nullable) out.push('nullable');
  if (s['x-kubernetes-preserve-unknown-fields']) out.push('keeps unknown fields');
  if (s['x-kubernetes-list-type']) out.push(`list type ${s['x-kubernetes-list-type']}${s['x-kubernetes-list-map-keys'] ? ` by ${s['x-kubernetes-list-map-keys'].join(', ')}` : ''}`);
  return out;
}

// The schema of the items of an array or a map; other schemas are returned unchanged.
function inner(schema, resolve) {
  let s = resolve(schema);
  for (let depth = 0; depth < DEEPEST; depth++) {
    if (s.type === 'array' && s.items) s = resolve(s.items);
    else if (s.type === 'object' && !s.properties && typeof s.additionalProperties === 'object') s = resolve(s.additionalProperties);
    else break;
  }
  return s;
}

function field(name, schema, required, resolve, depth) {
  const s = resolve(schema);
  const below = inner(schema, resolve);
  const rules = [...(s['x-kubernetes-validations'] ?? [])];
  const head = [h('code.name', null, name), h('span.type', null, typeOf(schema, resolve)), required && h('span.required', null, 'required'),
    constraints(s).map((text) => h('span.constraint', null, text))];
  const description = [schema.description ?? s.description].filter(Boolean).map((text) => h('p.description', null, text));
  const ruled = rules.map((rule) => h('p.rule', null, h('code', null, rule.rule), rule.message && ` – ${rule.message}`));
  if (!below.properties || depth >= DEEPEST) return h('li.leaf', null, h('div.head', null, head), description, ruled);
  const details = h('details', null, h('summary', null, head), description, ruled);
  // The spec is unfolded at first.
  details.open = depth === 0 && name === 'spec';
  details.addEventListener('toggle', () => {
    if (details.open && !details.querySelector('ul')) details.append(fields(below, resolve, depth + 1));
  });
  return h('li', null, details);
}

function fields(schema, resolve, depth) {
  const required = new Set(schema.required ?? []);
  const entries = Object.entries(schema.properties ?? {});
  return h('ul.schema', null, entries.map(([name, one]) => field(name, one, required.has(name), resolve, depth)));
}

// `resolve` follows references.
export function schemaTree(schema, resolve = (one) => one ?? {}) {
  const s = inner(schema, resolve);
  const rules = s['x-kubernetes-validations'] ?? [];
  return h('div.schema-tree', null, rules.map((rule) => h('p.rule', null, h('code', null, rule.rule))), s.properties ? fields(s, resolve, 0) : h('p.quiet', null, 'The schema has no fields.'));
}

// The schema of a served kind, from OpenAPI.
export async function schema({ main, parameters, signal }) {
  const { version, kind } = parameters;
  const group = parameters.group === 'core' ? '' : parameters.group;
  const document = await getJson(`/openapi/v3/${group ? `apis/${group}` : 'api'}/${version}`, { signal });
  const all = document.components?.schemas ?? {};
  const isIt = (one) => (one['x-kubernetes-group-version-kind'] ?? []).some((gvk) => gvk.group === group && gvk.version === version && gvk.kind === kind);
  const found = Object.values(all).find(isIt);
  if (!found) throw new Error(`OpenAPI has no schema of ${kind} in ${group || 'core'}/${version}.`);
  const resolve = (one) => {
    const reference = one?.$ref ?? one?.allOf?.[0]?.$ref;
    return reference ? all[reference.replace('#/components/schemas/', '')] ?? {} : one ?? {};
  };
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, kind), h('span.quiet', null, `${group || 'core'}/${version}`)),
    h('section.panel', null, found.description && h('p.description', null, found.description), schemaTree(found, resolve))));
}
