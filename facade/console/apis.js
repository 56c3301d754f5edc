// APIs: where each group version is served, whether it is available, and if not, the stage that fails and since when.

import { button, crumbs, h, replace, failure, mark, section, table } from './dom.js';
import { call, jsonLines, query, printJson, repeat } from './http.js';
import { followObjects } from './watch.js';
import { Grid, filterField, gridKeys } from './grid.js';
import { objectLink } from './discovery.js';
import { pageKeys } from './keys.js';
import { go } from './router.js';
import { age, moment, since } from './time.js';
import { certificates, end } from './certs.js';

const PATH = '/apis/apiregistration.k8s.io/v1/apiservices';
const RESOURCE = { group: 'apiregistration.k8s.io', version: 'v1', name: 'apiservices' };

function condition(service) {
  return (service.status?.conditions ?? []).find((one) => one.type === 'Available') ?? {};
}

export async function apis({ main, signal }) {
  const grid = new Grid({ label: 'APIs', signal, open: (row) => go(`#/api/${encodeURIComponent(row.id)}`) });
  const filter = filterField(() => show());
  const problem = h('div'), count = h('span.count');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'APIs'), count, h('span.grow'), filter), problem, grid.element));
  let rows = [];
  const show = () => grid.setRows(rows.filter((row) => `${row.id} ${row.served} ${row.reason}`.toLowerCase().includes(filter.value.toLowerCase())));
  followObjects(PATH, {}, signal, (services) => {
    rows = [...services.values()].map((service) => {
      const { status, reason, message, lastTransitionTime } = condition(service);
      const { service: backend } = service.spec;
      const urls = service.metadata.annotations?.['portico.dev/backend-urls'];
      const served = urls ?? (backend ? `${backend.namespace}/${backend.name}:${backend.port ?? 443}` : 'this server');
      const until = backend && !service.spec.insecureSkipTLSVerify && firstEnd(service.spec.caBundle);
      return { id: service.metadata.name, served, until, ok: status === 'True', reason, message, since: lastTransitionTime };
    });
    rows.sort((a, b) => a.ok - b.ok || a.id.localeCompare(b.id));
    grid.setColumns(columns(rows));
    const bad = rows.filter((row) => !row.ok).length;
    count.textContent = bad ? `${rows.length}, ${bad} unavailable` : String(rows.length);
    replace(problem);
    show();
  }, (error) => replace(problem, failure(error)));
  pageKeys(gridKeys(grid, filter));
  grid.body.focus({ preventScroll: true });
}

// Names and addresses get the width that they need; the message gets the rest.
function columns(rows) {
  const longest = (text) => Math.min(60, Math.max(16, ...rows.map((row) => text(row).length)));
  return [
    { title: 'APIService', cell: (row) => row.id, width: `${longest((row) => row.id) + 1}ch`, strong: true },
    { title: 'Available', cell: (row) => mark(row.ok, row.ok ? 'yes' : row.reason || 'no'), width: `${longest((row) => row.reason ?? '') + 3}ch`, narrow: true },
    { title: 'Since', cell: (row) => since(row.since), width: '8ch' },
    { title: 'Served by', cell: (row) => row.served, width: `minmax(12ch,${longest((row) => row.served)}ch)` },
    { title: 'CA ends', cell: (row) => row.until && h('span', { title: moment(row.until) }, end(row.until)), width: '11ch' },
    { title: 'Message', cell: (row) => row.message, width: 'minmax(10ch,1fr)' },
  ];
}

// The end of the first certificate of a bundle, if it has one.
function firstEnd(bundle) {
  const ends = bundle ? certificates(atob(bundle)).map(({ until }) => until).filter(Boolean) : [];
  return ends.length ? new Date(Math.min(...ends)) : undefined;
}

// One APIService: the stages of Explain, updated whenever the object changes.
export async function api({ main, parameters, signal }) {
  const { name } = parameters;
  const stages = h('div'), backend = h('div'), seen = h('div'), trust = h('div'), admission = h('div');
  const explain = async () => {
    try {
      const answer = await call('portico.routes.v1.Routes/Explain', { subject: name }, { signal });
      replace(stages, showStages(answer));
      replace(admission, showWebhooks(answer.webhooks));
      const { routes } = await call('portico.routes.v1.Routes/List', { group: groupOf(name) }, { signal });
      const found = routes.find((route) => route.name === name);
      replace(backend, found ? routeTable(found) : h('p.quiet', null, 'The route table has no entry for it.'));
    } catch (error) {
      if (!signal.aborted) replace(stages, failure(error));
    }
  };
  replace(main, h('div.page', null,
    crumbs(['#/apis', 'APIs']),
    h('div.bar', null, h('h1', null, name), h('span.grow'), h('a', { href: objectLink(RESOURCE, '', name) }, 'Object'), button('Refresh', explain)),
    section('Stages of a request', stages), section('Backend', backend, seen), section('Trust', trust), admission));
  followBackend(name, seen, signal);
  pageKeys({ r: ['Refresh', explain], Escape: ['Back to the APIs', () => go('#/apis')] });
  let shown;
  followObjects(PATH, { fieldSelector: `metadata.name=${name}` }, signal, (found) => {
    const [service] = found.values();
    const state = printJson([service?.spec, condition(service ?? {})]);
    if (state === shown) return;
    shown = state;
    replace(trust, service ? showTrust(service) : h('p.quiet', null, 'This APIService does not exist.'));
    explain();
  }, (error) => { shown = undefined; replace(trust, failure(error)); });
}

function groupOf(name) {
  return name.includes('.') ? name.slice(name.indexOf('.') + 1) : '';
}

function showStages({ ok, stages }) {
  const first = stages.find((stage) => !stage.ok);
  const seen = (by) => (by === 'control' ? 'the control service' : `facade ${by}`);
  return [h('p.large', null, mark(ok, ok ? 'Requests reach a server' : `Fails at ${first?.stage}`), first?.since && h('span.quiet', null, ' for ', since(first.since))),
    h('ol.stages', null, stages.map((stage) => h(stage.ok ? 'li.stage.ok' : 'li.stage.failed', null,
      h('strong', null, mark(stage.ok, stage.stage)), h('span.reason', null, stage.reason), h('span', null, stage.message),
      h('span.quiet', null, [stage.since && `since ${moment(stage.since)}`, stage.seenBy.length && `seen by ${stage.seenBy.map(seen).join(', ')}`].filter(Boolean).join(' · ')))))];
}

// The addresses of the backend as seen by this facade, live.
function followBackend(name, into, signal) {
  return repeat(signal, async () => {
    for await (const { backends: [seen] } of jsonLines(`/console/data/backends${query({ name, watch: 'true' })}`, { signal })) replace(into, showBackend(seen));
  }, (error) => replace(into, failure(error)));
}

function showBackend(seen) {
  if (!seen?.targets.length) return null;
  const targets = seen.targets.map((one) => [h('code', null, one.target), one.weight === null ? 'equal' : one.weight === 0 ? '0: only if all others fail' : String(one.weight),
    one.circuitOpen ? mark(false, 'open: probes only') : mark(true, 'closed'), showEjection(one.ejection), String(one.failures), one.failed || 'connected',
    since(one.since, ' ago'), one.message]);
  return [h('h3', null, `As seen by this facade · ${seen.inFlight} requests in flight`),
    table('Addresses', ['Address', 'Weight', 'Circuit', 'Ejection', 'Failed dials in a row', 'Last dial', 'Since', 'Message'], targets)];
}

// The state of outlier ejection of an address.
function showEjection(ejection) {
  if (!ejection) return h('span.quiet', null, 'off');
  const { out, failures, since, triedAt } = ejection;
  const at = (text) => h('span.quiet', { title: moment(since) }, text);
  if (out) return [mark(false, `ejected after ${failures} failures`), at(` next attempt at ${moment(triedAt)}`)];
  if (failures) return [mark(true, 'in'), at(` ${failures} failures in a row`)];
  return [mark(true, since ? 'returned' : 'in'), since && at(` at ${moment(since)}`)];
}

function routeTable(route) {
  return table('Backend', ['Service', 'Addresses', 'Paths', 'Hides resources of'], [[route.service, route.targets.join(', ') || '–', h('code', null, route.paths.join('\n')), route.shadows.join('; ') || '–']]);
}

function showTrust({ spec }) {
  if (!spec.service) return h('p.quiet', null, 'Served by this server: no certificate to verify.');
  if (spec.insecureSkipTLSVerify) return h('p', null, 'The certificate of the backend is not verified (insecureSkipTLSVerify).');
  if (!spec.caBundle) return h('p', null, 'The root certificates of the system.');
  return table('Certificates of the CA bundle', ['Subject', 'Ends', 'In'], certificates(atob(spec.caBundle)).map(({ name, until }) =>
    [name, until ? moment(until) : mark(false, 'unknown'), until && end(until)]));
}

function showWebhooks(webhooks) {
  if (!webhooks.length) return null;
  return section('Webhooks that a write would call', table('Webhooks', ['Name', 'Configuration', 'Health', 'Since', 'Reason', 'CA ends', 'Open circuits'], webhooks.map((one) => [
    one.name, one.configuration, mark(!['Failing', 'CircuitOpen'].includes(one.health), one.health), one.since && age(one.since), one.reason,
    one.caNotAfter && h('span', { title: moment(one.caNotAfter) }, end(new Date(one.caNotAfter))),
    one.openCircuits.map((circuit) => `${circuit.target}: ${circuit.reason}`).join('; ')])));
}
