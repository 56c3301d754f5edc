// Edits an object by server-side apply: what would change, what others own, and taking it over.
// The server reads the YAML; the editor never has to.

import { h, replace, failure, table } from './dom.js';
import { fetchApi, query } from './http.js';
import { parseJson } from './json.js';
import { showDiff } from './diff.js';
import { editable, printYaml } from './yaml.js';

export const MANAGER = 'portico-console';
const MOST_ROWS = 30;

export class Editor {
  constructor(path) {
    this.path = path;
    this.area = h('textarea.code', { 'aria-label': 'YAML to apply', spellcheck: 'false', autocomplete: 'off', oninput: () => this.typed(), onkeydown: (event) => this.key(event) });
    this.note = h('p.quiet', { 'aria-live': 'polite' });
    this.result = h('div', { id: 'apply-result', 'aria-live': 'polite' });
    this.buttons = ['Dry run', 'Apply'].map((name) => h(name === 'Apply' ? 'button.primary' : 'button', { type: 'button', onclick: () => this.apply({ dryRun: name === 'Dry run' }) }, name));
    this.element = h('div.editor', null,
      h('p.quiet', null, `Applied by the field manager ${MANAGER}: fields that are left out stay as others set them; fields that only ${MANAGER} owns are removed. Ctrl+Enter is a dry run.`),
      this.area, this.note,
      h('div.buttons', null, this.buttons, h('button', { type: 'button', onclick: () => this.reset() }, 'Start again')), this.result);
  }

  focus() {
    this.area.focus();
  }

  // The newest state of the object: what is edited stays.
  offer(text, object) {
    this.newest = text;
    this.object = object;
    if (!this.isEdited) this.begin(text);
    else if (text !== this.began) this.note.textContent = 'The object has changed since you began. A dry run compares with what it is now.';
  }

  begin(text) {
    this.area.value = this.began = text;
    this.area.rows = Math.min(MOST_ROWS, text.split('\n').length + 1);
  }

  reset() {
    this.isEdited = false;
    this.begin(this.newest);
    this.note.textContent = '';
    replace(this.result);
  }

  typed() {
    this.isEdited = this.area.value !== this.began;
  }

  key(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.apply({ dryRun: true });
    }
  }

  async apply({ dryRun, force }) {
    for (const button of this.buttons) button.disabled = true;
    const options = { fieldManager: MANAGER, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : '', force: force ? 'true' : '' };
    try {
      const response = await fetchApi(this.path + query(options), { method: 'PATCH', type: 'application/apply-patch+yaml', body: this.area.value });
      const answered = parseJson(await response.text());
      this.applied(answered, dryRun, force, response.headers.get('warning'));
    } catch (error) {
      replace(this.result, error.code === 409 ? this.conflict(error, dryRun) : failure(error));
    }
    for (const button of this.buttons) button.disabled = false;
    this.result.scrollIntoView({ block: 'nearest' });
  }

  applied(answered, dryRun, force, warning) {
    const after = printYaml(editable(answered));
    const before = this.newest;
    if (!dryRun) {
      this.isEdited = false;
      this.offer(after, answered);
      this.note.textContent = '';
    }
    replace(this.result,
      h('h3', null, dryRun ? 'This would change' : `Applied: revision ${answered.metadata.resourceVersion}`), warning && h('p.warning', null, warning), showDiff(before, after),
      dryRun && h('div.buttons', null, h('button.primary', { type: 'button', onclick: () => this.apply({ force }) }, force ? 'Apply and take over' : 'Apply')));
  }

  conflict(error, dryRun) {
    const causes = error.status?.details?.causes ?? [];
    if (!causes.some((cause) => cause.reason === 'FieldManagerConflict')) return failure(error);
    const manager = (message) => /"([^"]*)"/.exec(message)?.[1] ?? '';
    return h('div.conflict', { role: 'alert' },
      h('h3', null, 'Others own fields that you would change'),
      table('Conflicts', ['Field', 'Owner', 'In the server’s words'], causes.map((cause) => [h('code', null, cause.field), manager(cause.message), cause.message])),
      h('div.buttons', null, h('button.danger', { type: 'button', id: 'force', onclick: () => this.apply({ dryRun, force: true }) },
        dryRun ? 'Dry run as if taken over' : 'Apply and take these fields over')));
  }
}
