// A new object: YAML that the server creates by server-side apply, after a dry run if it is wanted.

import { h, replace, failure } from './dom.js';
import { fetchApi, query } from './http.js';
import { groupVersion, objectLink, pathOf } from './discovery.js';
import { go } from './router.js';
import { printYaml, text } from './yaml.js';
import { MANAGER } from './editor.js';

export function newObject(kind, namespace) {
  const metadata = kind.namespaced ? { name: 'example', namespace: namespace || 'default' } : { name: 'example' };
  const name = h('input', { id: 'new-name', value: 'example', required: true, spellcheck: 'false' });
  const place = kind.namespaced && h('input', { id: 'new-namespace', value: metadata.namespace, required: true, spellcheck: 'false' });
  const area = h('textarea.code', { id: 'new-yaml', rows: '18', spellcheck: 'false', 'aria-label': 'YAML', value: printYaml({ apiVersion: groupVersion(kind), kind: kind.kind, metadata }) });
  const rename = () => {
    area.value = area.value.replace(/^( {2}name: ).*$/m, (_, start) => start + text(name.value, ''));
    if (place) area.value = area.value.replace(/^( {2}namespace: ).*$/m, (_, start) => start + text(place.value, ''));
  };
  name.addEventListener('input', rename);
  place?.addEventListener('input', rename);
  const result = h('div', { 'aria-live': 'polite' });
  const create = async (dryRun) => {
    const path = pathOf(kind, place?.value, name.value);
    const options = { fieldManager: MANAGER, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : '' };
    try {
      await fetchApi(path + query(options), { method: 'PATCH', type: 'application/apply-patch+yaml', body: area.value });
      if (dryRun) return replace(result, h('p.good', null, '✓ The server would take it.'));
      dialog.close();
      go(objectLink(kind, place?.value, name.value));
    } catch (error) {
      replace(result, failure(error));
    }
  };
  const dialog = h('dialog.wide', { 'aria-labelledby': 'new-title' },
    h('h2', { id: 'new-title' }, `New ${kind.kind}`),
    h('div.fields', null, h('label', { for: 'new-name' }, 'Name'), name, place && [h('label', { for: 'new-namespace' }, 'Namespace'), place]),
    area, result,
    h('div.buttons', null, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
      h('button', { type: 'button', onclick: () => create(true) }, 'Dry run'),
      h('button.primary', { type: 'button', onclick: () => create(false) }, 'Create')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  name.select();
}
