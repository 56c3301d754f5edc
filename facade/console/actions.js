// Actions on objects: scale, suspend, delete. Each asks for a confirmation or a value first.

import { confirmed, dialog, failure, h, notify, replace } from './dom.js';
import { fetchApi, forEach, getJson, query } from './http.js';
import { pathOf } from './discovery.js';
import { MANAGER } from './editor.js';

const MAX_NAMED = 10;

function patch(path, body) {
  return fetchApi(path + query({ fieldManager: MANAGER }), { method: 'PATCH', type: 'application/merge-patch+json', body: JSON.stringify(body) });
}

function remove(kind, { namespace, name, id: uid }) {
  const options = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid }, propagationPolicy: 'Background' };
  return fetchApi(pathOf(kind, namespace, name), { method: 'DELETE', type: 'application/json', body: JSON.stringify(options) });
}

// Deletes the objects after a confirmation that names them; returns the errors.
export async function removeAll(kind, objects) {
  const names = objects.slice(0, MAX_NAMED).map(({ namespace, name }) => h('li', null, namespace ? `${namespace}/${name}` : name));
  const title = objects.length === 1 ? `Delete ${objects[0].name}?` : `Delete ${objects.length} objects (${kind.name})?`;
  const isConfirmed = await confirmed(title, 'Delete',
    objects.length > 1 && h('ul', null, names, objects.length > MAX_NAMED && h('li.quiet', null, `and ${objects.length - MAX_NAMED} more`)),
    h('p', null, `If a garbage collector runs, it also deletes the objects that ${objects.length > 1 ? 'they own' : 'it owns'}.`));
  const errors = [];
  if (!isConfirmed) return errors;
  await forEach(objects, undefined, (object) => remove(kind, object).catch((error) => errors.push(error)));
  const deleted = objects.length - errors.length;
  if (deleted) notify(`${objects.length > 1 ? `${deleted} ${kind.name}` : objects[0].name} deleted.`);
  return errors;
}

// Asks for a number of replicas and writes it to the scale subresource.
export async function scale(path, name) {
  const { spec } = await getJson(`${path}/scale`);
  const result = h('div', { 'aria-live': 'polite' });
  const input = h('input', { id: 'replicas', type: 'number', min: '0', required: true, value: spec?.replicas ?? 0, 'aria-label': 'Replicas', autofocus: true });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await patch(`${path}/scale`, { spec: { replicas: Number(input.value) } });
      node.close();
      notify(`Scaled from ${spec?.replicas ?? 0} to ${input.value}.`);
    } catch (error) {
      replace(result, failure(error));
    }
  };
  const node = dialog('dialog', `Scale ${name}`, h('form', { onsubmit: submit }, h('div.fields', null, h('label', { for: 'replicas' }, 'Replicas'), input), result,
    h('div.buttons', null, h('button', { type: 'button', onclick: () => node.close() }, 'Cancel'), h('button.primary', { type: 'submit', id: 'confirm' }, 'Scale'))));
  input.select();
}

// Jobs and CronJobs can be suspended.
export function isSuspendable({ group, name }) {
  return group === 'batch' && ['jobs', 'cronjobs'].includes(name);
}

export function suspend(path, isSuspended) {
  return patch(path, { spec: { suspend: isSuspended } });
}
