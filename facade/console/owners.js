// The field managers of an object and the fields that each of them owns.

import { h, table } from './dom.js';
import { age, moment } from './time.js';

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
    h('span', { title: moment(entry.time) }, entry.time ? `${age(entry.time)} ago` : ''), String(paths(entry.fieldsV1).length),
  ]);
  const fields = [...owners].sort(([a], [b]) => a.localeCompare(b)).map(([path, by]) => [h('code', null, path), by.join(', ')]);
  return h('div', null,
    table('Managers', ['Manager', 'Operation', 'Subresource', 'Version', 'When', 'Fields'], managers),
    table('Fields', ['Field', 'Owned by'], fields));
}
