// Definitions of custom resources: versions, stored versions, the schema, and the effects of a change.

import { button, crumbs, h, replace, failure, mark, section, table } from './dom.js';
import { call, printJson } from './http.js';
import { followObjects } from './watch.js';
import { Grid, filterField, gridKeys } from './grid.js';
import { listLink, objectLink, resources } from './discovery.js';
import { pageKeys } from './keys.js';
import { go } from './router.js';
import { age } from './time.js';
import { editable, printYaml } from './yaml.js';
import { schemaTree } from './schema.js';

const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const RESOURCE = { group: 'apiextensions.k8s.io', version: 'v1', name: 'customresourcedefinitions' };

// Definitions, and the built-in kinds with their schemas.
export async function definitions({ main, signal }) {
  const grid = new Grid({ label: 'Definitions', signal, open: (row) => go(row.link) });
  const filter = filterField(() => show());
  const problem = h('div'), count = h('span.count');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'Definitions'), count, h('span.grow'), filter), problem, grid.element));
  grid.setColumns([
    { title: 'Kind', cell: (row) => row.kind, width: 'minmax(18ch,2fr)', strong: true },
    { title: 'Name', cell: (row) => row.name, width: 'minmax(28ch,3fr)', narrow: true },
    { title: 'Versions', cell: (row) => row.versions },
    { title: 'Stored', cell: (row) => row.stored },
    { title: 'State', cell: (row) => (row.state ? mark(row.state === 'Established', row.state) : 'built in') },
    { title: 'Age', cell: (row) => age(row.created), width: '8ch' },
  ]);
  let custom = [];
  const builtin = (await resources()).filter((one) => one.preferred).map((one) => ({ id: `${one.group}/${one.kind}/${one.name}`, group: one.group, plural: one.name, kind: one.kind,
    name: [one.name, one.group].filter(Boolean).join('.'), versions: one.version, stored: '', link: `#/schema/${one.group || 'core'}/${one.version}/${one.kind}` }));
  if (signal.aborted) return;
  const show = () => {
    const defined = new Set(custom.map((row) => row.name));
    const rows = [...custom, ...builtin.filter((row) => !defined.has(row.name))];
    grid.setRows(rows.filter((row) => `${row.kind} ${row.name}`.toLowerCase().includes(filter.value.toLowerCase())));
  };
  followObjects(PATH, {}, signal, (found) => {
    custom = [...found.values()].map(({ metadata, spec, status }) => ({
      id: metadata.uid, name: metadata.name, kind: spec.names.kind, versions: spec.versions.map((one) => one.name).join(', '), stored: (status?.storedVersions ?? []).join(', '),
      state: stateOf(status), created: metadata.creationTimestamp, link: `#/definition/${metadata.name}`,
    })).sort((a, b) => a.name.localeCompare(b.name));
    count.textContent = `${custom.length} custom`;
    replace(problem);
    show();
  }, (error) => { replace(problem, failure(error)); show(); });
  pageKeys(gridKeys(grid, filter));
  grid.body.focus({ preventScroll: true });
}

function stateOf(status) {
  const bad = (status?.conditions ?? []).find((one) => (one.type === 'NamesAccepted' && one.status === 'False') || (one.type === 'Established' && one.status !== 'True'));
  return bad ? bad.reason : (status?.conditions ?? []).length ? 'Established' : 'Pending';
}

export async function definition({ main, parameters, signal }) {
  const { name } = parameters;
  const facts = h('div.stack'), schemas = h('div'), problem = h('div');
  const check = new Check();
  replace(main, h('div.page', null, crumbs(['#/definitions', 'Definitions']),
    h('div.bar', null, h('h1', null, name), h('span.grow'), h('a', { href: objectLink(RESOURCE, '', name) }, 'Object')),
    problem, facts, section('Schema', schemas), section('Effects of a change', check.element)));
  pageKeys({ Escape: ['Back to the definitions', () => go('#/definitions')], c: ['Check an edited definition', () => check.area.focus()] });
  let shown;
  followObjects(PATH, { fieldSelector: `metadata.name=${name}` }, signal, (found) => {
    const [newest] = found.values();
    if (!newest) return replace(problem, h('p.quiet', null, 'This definition does not exist.'));
    replace(problem);
    const object = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', ...newest };
    replace(facts, showFacts(object));
    check.offer(printYaml(editable(object)));
    const state = printJson(object.spec.versions);
    if (state !== shown) showSchemas(schemas, object.spec.versions);
    shown = state;
  }, (error) => replace(problem, failure(error)));
}

function showFacts({ spec, status }) {
  const stored = new Set(status?.storedVersions ?? []);
  const links = spec.versions.filter((one) => one.served).map((one) => h('a', { href: listLink({ group: spec.group, version: one.name, name: spec.names.plural }) }, `${spec.names.kind} objects (${one.name})`));
  return [section('Versions', h('p', null, `${spec.scope} · conversion ${spec.conversion?.strategy ?? 'None'} · `, links.flatMap((link, at) => (at ? [', ', link] : [link]))),
    table('Versions', ['Version', 'Served', 'Storage version', 'May have stored objects', 'Deprecated'], spec.versions.map((one) => [
      one.name, one.served ? '✓' : '–', one.storage ? '✓' : '–', stored.has(one.name) ? '✓' : '–', one.deprecated ? one.deprecationWarning || 'yes' : '–']))),
  section('Conditions', table('Conditions', ['Type', 'Status', 'Reason', 'Message', 'Since'], (status?.conditions ?? []).map((one) => [
    one.type, one.status, one.reason, one.message, age(one.lastTransitionTime)])))];
}

function showSchemas(into, versions) {
  const panel = h('div');
  const show = (version) => replace(panel, schemaTree(version.schema?.openAPIV3Schema ?? {}));
  const first = versions.find((one) => one.storage) ?? versions[0];
  const select = h('select', { 'aria-label': 'Version', onchange: () => show(versions.find((one) => one.name === select.value)) }, versions.map((one) => h('option', { value: one.name, selected: one === first }, one.name)));
  replace(into, versions.length > 1 && select, panel);
  show(first);
}

const KINDS = { ERROR: 'Refused', WARNING: 'Warning', BREAKING: 'Breaks clients', INVALID: 'Stored object is invalid', LOST: 'Stored object loses a field' };

// Lets the control service check an edited definition.
class Check {
  constructor() {
    this.area = h('textarea.code', { 'aria-label': 'Definition to check', rows: '16', spellcheck: 'false', oninput: () => { this.isEdited = true; } });
    this.result = h('div', { id: 'check-result', 'aria-live': 'polite' });
    this.element = h('div', null, h('p.quiet', null, 'Edit the definition and check it against clients and stored objects. Nothing is written.'), this.area,
      h('div.buttons', null, button('Check', () => this.check(), { id: 'check' }, 'button.primary')), this.result);
  }

  offer(text) {
    if (!this.isEdited) this.area.value = text;
  }

  async check() {
    replace(this.result, h('p.quiet', null, 'Checking …'));
    try {
      const octets = new TextEncoder().encode(this.area.value);
      const definition = btoa(Array.from(octets, (octet) => String.fromCharCode(octet)).join(''));
      const { findings, objects, hit } = await call('portico.apiextensions.v1.Definitions/Check', { definition, mediaType: 'application/yaml' });
      const kind = (one) => KINDS[one.kind.replace('KIND_', '')] ?? one.kind;
      replace(this.result, h('p.large', null, mark(!findings.length, findings.length ? `${findings.length} findings` : 'No findings')),
        h('p.quiet', null, `${objects} stored objects were checked, ${hit} would be affected.`),
        findings.length ? table('Findings', ['Effect', 'Version', 'Object', 'Field', 'Message'], findings.map((one) => [kind(one), one.version, one.object, h('code', null, one.field), one.text])) : null);
    } catch (error) {
      replace(this.result, failure(error));
    }
  }
}
