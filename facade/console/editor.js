// Edits objects by server-side apply, and creates objects. Before a write that takes fields over from another manager, the
// editor explains it. The server parses the YAML; the console does not.

import { button, h, replace, failure, table, dialog } from './dom.js';
import { fetchApi, query, parseJson } from './http.js';
import { showDiff } from './yaml_view.js';
import { editable, printYaml, text } from './yaml.js';
import { groupVersion, objectLink, pathOf } from './discovery.js';
import { go } from './router.js';

export const MANAGER = 'portico-console';
const MAX_ROWS = 30;

const owner = ({ message }) => /"([^"]*)"/.exec(message)?.[1] ?? message;

export class Editor {
  constructor(path) {
    this.path = path;
    this.area = h('textarea.code', { 'aria-label': 'YAML to apply', spellcheck: 'false', autocomplete: 'off', oninput: () => this.typed(), onkeydown: (event) => this.key(event) });
    this.managers = h('p.quiet', { id: 'managers' });
    this.note = h('p.quiet', { 'aria-live': 'polite' });
    this.result = h('div', { id: 'apply-result', 'aria-live': 'polite' });
    this.buttons = [button('Dry run', () => this.apply({ dryRun: true })), button('Save', () => this.apply({}), { id: 'save' }, 'button.primary')];
    this.element = h('div.editor', null, this.managers, this.area, this.note,
      h('div.buttons', null, this.buttons, button('Discard changes', () => this.reset())), this.result);
  }

  focus() {
    this.area.focus();
  }

  // The newest state of the object; text that was edited stays.
  offer(text, object) {
    this.newest = text;
    this.newestUid = object.metadata.uid;
    const others = new Set((object.metadata.managedFields ?? []).filter(({ manager, subresource }) => manager !== MANAGER && !subresource).map(({ manager }) => manager));
    const managed = others.size ? ` Fields of this object are managed by ${[...others].join(', ')}: if you change one of them, saving takes it over, after you confirm.` : '';
    this.managers.textContent = `Saving makes ${MANAGER} an owner of all fields below (server-side apply). Fields that only ${MANAGER} owns are removed if you leave them out.${managed} Ctrl+Enter starts a dry run.`;
    if (!this.isEdited) this.begin();
    else if (text !== this.began) this.note.textContent = 'The object has changed since you started editing. A dry run compares with its current state.';
  }

  begin() {
    this.area.value = this.began = this.newest;
    this.uid = this.newestUid;
    this.area.rows = Math.min(MAX_ROWS, this.began.split('\n').length + 1);
  }

  reset() {
    this.isEdited = false;
    this.begin();
    this.note.textContent = '';
    replace(this.result);
  }

  // Another text withdraws the result of the last request, which may ask for a confirmation.
  typed() {
    this.isEdited = this.area.value !== this.began;
    replace(this.result);
  }

  key(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!this.buttons[0].disabled) this.apply({ dryRun: true });
    }
  }

  // With the uid, apply does not create an object that was deleted in the meantime.
  async send({ dryRun, force, text }) {
    const body = text.replace(/^metadata:\s*$(?![^]*^  uid:)/m, `metadata:\n  uid: ${this.uid}`);
    const options = { fieldManager: MANAGER, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : '', force: force ? 'true' : '' };
    const response = await fetchApi(this.path + query(options), { method: 'PATCH', type: 'application/apply-patch+yaml', body });
    return { object: parseJson(await response.text()), warning: response.headers.get('warning') };
  }

  // `force` is set once the user has confirmed a takeover of `text`.
  async apply({ dryRun, force, text = this.area.value }) {
    const before = this.newest;
    for (const one of this.buttons) one.disabled = true;
    replace(this.result);
    try {
      replace(this.result, this.applied(await this.send({ dryRun, force, text }), { dryRun, before, text }));
    } catch (error) {
      const causes = (error.status?.details?.causes ?? []).filter((cause) => cause.reason === 'FieldManagerConflict');
      // Fields that this manager owns by creating the object need no confirmation.
      if (causes.length && !force && causes.every((cause) => owner(cause) === MANAGER)) return this.apply({ dryRun, force: true, text });
      const shown = causes.length ? await this.takeover(causes, before, text) : failure(error);
      replace(this.result, causes.length && this.area.value !== text ? 'Not saved: the text has changed.' : shown);
    }
    for (const one of this.buttons) one.disabled = false;
    this.result.scrollIntoView({ block: 'nearest' });
  }

  // Text that was typed since the request stays.
  applied({ object, warning }, { dryRun, before, text }) {
    const after = printYaml(editable(object));
    if (!dryRun) {
      if (this.area.value === text) this.isEdited = false;
      this.offer(after, object);
      if (!this.isEdited) this.note.textContent = '';
    }
    return [h('h3', null, dryRun ? 'Dry run: nothing is saved yet' : `Saved: revision ${object.metadata.resourceVersion}`), warning && h('p.warning', null, warning), showDiff(before, after)];
  }

  // Explains which fields have another manager, shows the change, and asks once.
  async takeover(causes, before, text) {
    const owners = [...new Set(causes.map(owner))].join(', ');
    const change = await this.send({ dryRun: true, force: true, text }).then(({ object }) => showDiff(before, printYaml(editable(object))), failure);
    return h('div.takeover', { role: 'alert' },
      h('h3', null, causes.length > 1 ? `These fields are managed by ${owners}` : `This field is managed by ${owners}`),
      h('p', null, `Saving takes ${causes.length > 1 ? 'them' : 'it'} over: ${MANAGER} becomes the manager. `,
        /kubectl/.test(owners) ? 'The next kubectl apply of another value changes it back, or reports a conflict.' : 'The present manager may change it back.'),
      table('Fields', ['Field', 'Managed by'], causes.map((cause) => [h('code', null, cause.field), owner(cause)])), change,
      h('div.buttons', null, button('Cancel', () => replace(this.result)), button('Save and take over', () => this.apply({ force: true, text }), { id: 'force' }, 'button.primary')));
  }
}

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
  if (place) place.addEventListener('input', rename);
  const result = h('div', { 'aria-live': 'polite' });
  const create = async (dryRun) => {
    const options = { fieldManager: MANAGER, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : '' };
    try {
      const response = await fetchApi(pathOf(kind, place?.value) + query(options), { method: 'POST', type: 'application/yaml', body: area.value });
      if (dryRun) return replace(result, h('p.good', null, '✓ The server accepts this object.'));
      const { metadata } = parseJson(await response.text());
      return go(objectLink(kind, metadata.namespace, metadata.name));
    } catch (error) {
      return replace(result, failure(error));
    }
  };
  const node = dialog('dialog.wide', `New ${kind.kind}`,
    h('div.fields', null, h('label', { for: 'new-name' }, 'Name'), name, place && [h('label', { for: 'new-namespace' }, 'Namespace'), place]),
    area, result,
    h('div.buttons', null, button('Cancel', () => node.close()), button('Dry run', () => create(true)), button('Create', () => create(false), { id: 'create' }, 'button.primary')));
  name.select();
}
