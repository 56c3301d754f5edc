// APIs: where each group version is served, whether it is reachable, and if not, the stage that fails and since when.

import { h, replace, failure, mark, section, table } from './dom.js';
import { call, jsonLines, pause, query } from './http.js';
import { printJson } from './json.js';
import { followObjects } from './watch.js';
import { Grid } from './grid.js';
import { gridKeys } from './grid_keys.js';
import { objectLink } from './discovery.js';
import { pageKeys } from './keys.js';
import { go } from './router.js';
import { age, moment } from './time.js';
import { certificates, end } from './certs.js';

const PATH = '/apis/apiregistration.k8s.io/v1/apiservices';
const RESOURCE = { group: 'apiregistration.k8s.io', version: 'v1', name: 'apiservices' };
const RETRY = 3000;

function condition(service) {
  return (service.status?.conditions ?? []).find((one) => one.type === 'Available') ?? {};
}

export async function apis({ main, signal }) {
  const grid = new Grid({ label: 'APIs', open: (row) => go(`#/api/${encodeURIComponent(row.id)}`) });
  const filter = h('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter  /', oninput: () => show() });
  const problem = h('div'), count = h('span.count');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'APIs'), count, h('span.grow'), filter), problem, grid.element));
  grid.setColumns([
    { title: 'APIService', cell: (row) => row.id, width: 'minmax(26ch,2fr)', strong: true },
    { title: 'Served by', cell: (row) => row.served, width: 'minmax(18ch,2fr)' },
    { title: 'Available', cell: (row) => mark(row.ok, row.ok ? 'yes' : row.reason || 'no'), width: 'minmax(16ch,1fr)' },
    { title: 'Since', cell: (row) => row.since && h('span', { title: moment(row.since) }, age(row.since)), width: '9ch' },
    { title: 'CA ends', cell: (row) => row.until && h('span', { title: moment(row.until) }, end(row.until)), width: '12ch' },
    { title: 'Says', cell: (row) => row.message, width: 'minmax(20ch,4fr)' },
  ]);
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
    const bad = rows.filter((row) => !row.ok).length;
    count.textContent = bad ? `${rows.length}, ${bad} unavailable` : String(rows.length);
    show();
  }, (error) => replace(problem, failure(error)));
  signal.addEventListener('abort', () => grid.end());
  pageKeys(gridKeys(grid, filter));
  grid.body.focus({ preventScroll: true });
}

// When the first certificate of a bundle ends; nothing without one.
function firstEnd(bundle) {
  const ends = bundle ? certificates(atob(bundle)).map(({ until }) => until).filter(Boolean) : [];
  return ends.length ? new Date(Math.min(...ends)) : undefined;
}

// One APIService: what Explain says of it, anew whenever it changes.
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
      replace(backend, found ? routeTable(found) : h('p.quiet', null, 'It is not in the table of routes.'));
    } catch (error) {
      if (!signal.aborted) replace(stages, failure(error));
    }
  };
  replace(main, h('div.page', null,
    h('nav.crumbs', { 'aria-label': 'Place' }, h('a', { href: '#/apis' }, 'APIs')),
    h('div.bar', null, h('h1', null, name), h('span.grow'), h('a', { href: objectLink(RESOURCE, '', name) }, 'The object'), h('button', { type: 'button', onclick: explain }, 'Ask again')),
    section('From registration to answer', stages), section('Backend', backend, seen), section('Trust', trust), admission));
  followBackend(name, seen, signal);
  pageKeys({ r: ['Ask again', explain], Escape: ['Back to the APIs', () => go('#/apis')] });
  let shown;
  followObjects(PATH, { fieldSelector: `metadata.name=${name}` }, signal, (found) => {
    const [service] = found.values();
    const state = printJson([service?.spec, condition(service ?? {})]);
    if (state === shown) return;
    shown = state;
    replace(trust, service ? showTrust(service) : h('p.quiet', null, 'There is no such APIService.'));
    explain();
  }, (error) => replace(trust, failure(error)));
}

function groupOf(name) {
  return name.includes('.') ? name.slice(name.indexOf('.') + 1) : '';
}

function showStages({ ok, stages }) {
  const first = stages.find((stage) => !stage.ok);
  return [h('p.large', null, mark(ok, ok ? 'A request would reach a server' : `Fails at ${first?.stage}`), first?.since && h('span.quiet', { title: moment(first.since) }, ` for ${age(first.since)}`)),
    h('ol.stages', null, stages.map((stage) => h(stage.ok ? 'li.stage.ok' : 'li.stage.failed', null,
      h('strong', null, mark(stage.ok, stage.stage)), h('span.reason', null, stage.reason), h('span', null, stage.message),
      h('span.quiet', null, [stage.since && `since ${moment(stage.since)}`, stage.seenBy.length && `seen by ${stage.seenBy.join(', ')}`].filter(Boolean).join(' · ')))))];
}

// What the requests of this facade have shown of its addresses, as it changes.
async function followBackend(name, into, signal) {
  while (!signal.aborted) {
    try {
      for await (const { backends: [seen] } of jsonLines(`/console/data/backends${query({ name, watch: 'true' })}`, { signal })) replace(into, showBackend(seen));
    } catch (error) {
      if (signal.aborted) return;
      replace(into, failure(error));
      if (error.code) return;
    }
    await pause(RETRY, signal);
  }
}

function showBackend(seen) {
  if (!seen?.targets.length) return null;
  const targets = seen.targets.map((one) => [h('code', null, one.target), one.weight === null ? 'as the others' : one.weight === 0 ? '0: the last resort' : String(one.weight),
    one.circuitOpen ? mark(false, 'open: only probes are sent') : mark(true, 'closed'), showEjection(one.ejection), String(one.failures), one.failed || 'reached',
    h('span', { title: moment(one.since) }, one.since && `${age(one.since)} ago`), one.message]);
  return [h('h3', null, `As this facade sees it · ${seen.inFlight} requests under way`),
    table('Addresses', ['Address', 'Weight', 'Circuit', 'Ejection', 'Failed dials in a row', 'Last dial', 'Since', 'Says'], targets)];
}

// Whether an address is left out for its answers, or has come back.
function showEjection(ejection) {
  if (!ejection) return h('span.quiet', null, 'none asked for');
  const { out, failures, since, triedAt } = ejection;
  if (out) return [mark(false, `ejected after ${failures} failures`), h('span.quiet', { title: moment(since) }, ` tried again at ${moment(triedAt)}`)];
  if (failures) return [mark(true, 'in'), h('span.quiet', { title: moment(since) }, ` ${failures} failures in a row`)];
  return [mark(true, since ? 'returned' : 'in'), since && h('span.quiet', { title: moment(since) }, ` at ${moment(since)}`)];
}

function routeTable(route) {
  return table('Backend', ['Service', 'Addresses', 'Paths', 'Hides'], [[route.service, route.targets.join(', ') || '–', h('code', null, route.paths.join('\n')), route.shadows.join('; ') || '–']]);
}

function showTrust({ spec }) {
  if (!spec.service) return h('p.quiet', null, 'Served by this server: no certificate is checked.');
  if (spec.insecureSkipTLSVerify) return mark(false, 'The backend’s certificate is not verified.');
  if (!spec.caBundle) return h('p', null, 'The roots of the system.');
  return table('Certificates of the CA bundle', ['Subject', 'Ends', 'In'], certificates(atob(spec.caBundle)).map(({ name, until }) =>
    [name, until ? moment(until) : mark(false, 'unknown'), until && end(until)]));
}

function showWebhooks(webhooks) {
  if (!webhooks.length) return null;
  return section('Webhooks that a write would meet', table('Webhooks', ['Name', 'Configuration', 'Health', 'Since', 'Why', 'CA ends', 'Open circuits'], webhooks.map((one) => [
    one.name, one.configuration, mark(!['Failing', 'CircuitOpen'].includes(one.health), one.health), one.since && age(one.since), one.reason,
    one.caNotAfter && h('span', { title: moment(one.caNotAfter) }, end(new Date(one.caNotAfter))),
    one.openCircuits.map((circuit) => `${circuit.target}: ${circuit.reason}`).join('; ')])));
}
