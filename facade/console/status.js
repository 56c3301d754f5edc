// The operator's page: health, the last hour of this facade, all facades, and certificates.

import { h, replace, failure, mark, section, table } from './dom.js';
import { getJson, getText, jsonLines, pause, ApiError } from './http.js';
import { plot } from './plot.js';
import { bytes, seconds, age, moment } from './time.js';
import { pageKeys } from './keys.js';
import { end } from './certs.js';

const WATCH = '/grpc/portico.config.v1.Config/WatchFacades';
const RETRY = 5000;
// Samples per facade, and the number of facades with plots.
const MAX_SAMPLES = 400;
const MAX_PLOTTED = 20;

export async function status({ main, signal }) {
  const health = h('div'), plots = h('div.plots'), facades = h('div'), certificates = h('div'), version = h('span.quiet');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'Status'), version), section('Health', health),
    section('The last hour of this facade', plots),
    section('Facades', facades), section('Certificates', certificates)));
  const readHealth = () => part(health, signal, showHealth);
  pageKeys({ r: ['Read health again', readHealth] });
  readHealth();
  followSamples(plots, signal, readHealth);
  followFacades(signal, facades, certificates, readHealth);
  const shown = await getJson('/version', { signal }).then(({ gitVersion, platform }) => `${gitVersion} · ${platform}`, ({ message }) => message);
  version.textContent = shown;
}

// Fills a part of the page, with the error if that fails. An older response does not replace a newer one.
async function part(into, signal, show) {
  const turn = into.turn = (into.turn ?? 0) + 1;
  const shown = await show(signal).catch(failure);
  if (!signal.aborted && into.turn === turn) replace(into, shown);
}

// With a failing check, /readyz responds with 500 and the same text.
async function showHealth(signal) {
  const text = await getText('/readyz?verbose', { accept: '*/*', signal }).catch((error) => {
    if (error.code === 500) return error.message;
    throw error;
  });
  const checks = text.split('\n').map((line) => /^\[([+-])\](\S+) (.*)$/.exec(line)).filter(Boolean);
  const failed = checks.filter(([, sign]) => sign === '-');
  return [h('p.large', null, mark(!failed.length, failed.length ? `${failed.length} of ${checks.length} checks fail` : 'Ready')),
    failed.map(([, , name, rest]) => h('p', null, mark(false, name), ` ${rest}`)),
    h('details', null, h('summary', null, `${checks.length} checks`), h('ul.checks', null, checks.map(([, sign, name]) => h('li', null, mark(sign === '+', name)))))];
}

// Draws the plots with each sample. Health is read again with every sixth sample, and when a facade reports that its checks changed.
async function followSamples(into, signal, refresh) {
  while (!signal.aborted) {
    let samples = [], count = 0;
    try {
      replace(into, h('p.quiet', null, 'The facade takes its first sample within ten seconds of its start.'));
      for await (const sample of jsonLines('/console/data/last-hour?watch=true', { signal })) {
        if (sample.time === undefined) continue;
        samples = [...samples, sample].slice(-MAX_SAMPLES);
        into.asked ??= requestAnimationFrame(() => { into.asked = undefined; if (!signal.aborted) replace(into, draw(samples)); });
        if (++count % 6 === 0 && Date.now() / 1000 - sample.time < 5) refresh();
      }
    } catch (error) {
      if (signal.aborted) return;
      replace(into, failure(error));
      if (error.code) return;
    }
    await pause(RETRY, signal);
  }
}

function draw(samples) {
  const rate = (...classes) => (sample) => classes.reduce((sum, at) => sum + sample.codes[at], 0) / sample.seconds;
  return [
    plot('Requests per second', samples, [{ name: '2xx, 3xx', value: rate(0, 1, 2) }, { name: '4xx', value: rate(3) }, { name: '5xx', value: rate(4) }], perSecond),
    plot('Latency', samples, [{ name: 'p50', value: (one) => one.p50 }, { name: 'p90', value: (one) => one.p90 }, { name: 'p99', value: (one) => one.p99 }], seconds),
    plot('Concurrency', samples, [{ name: 'in flight', value: (one) => one.inFlight[0] + one.inFlight[1] }, { name: 'waiting', value: (one) => one.waiting }, { name: 'watches', value: (one) => one.longRunning }], perSecond),
    plot('Memory', samples, [{ name: 'resident', value: (one) => one.memory }], bytes, 1024),
  ];
}

// `healthChanged` is called when the set of failing checks changes.
async function followFacades(signal, into, certificates, healthChanged) {
  let failed;
  while (!signal.aborted) {
    const facades = new Map();
    let own = [], asked;
    const show = () => {
      asked ??= requestAnimationFrame(() => {
        asked = undefined;
        if (signal.aborted) return;
        const all = [...facades.values()].sort((a, b) => a.facade.name.localeCompare(b.facade.name));
        replace(into, facadesTable(all), all.slice(0, MAX_PLOTTED).map(plots));
        replace(certificates, certificatesTable(own, all));
        const fails = JSON.stringify(all.filter(({ failing }) => failing.length).map(({ facade, failing }) => [facade.name, failing]));
        if (failed !== undefined && failed !== fails) healthChanged();
        failed = fails;
      });
    };
    try {
      for await (const { result, error } of jsonLines(WATCH, { method: 'POST', type: 'application/json', body: '{}', signal })) {
        if (error) throw new ApiError(error.code ?? 500, error);
        if (result.left) facades.delete(result.id);
        else if (!result.facade) own = result.certificates;
        else facades.set(result.id, { ...result, loads: [...facades.get(result.id)?.loads ?? [], ...result.loads.map(load)].slice(-MAX_SAMPLES) });
        show();
      }
    } catch (error) {
      if (signal.aborted) return;
      replace(into, failure(error));
      replace(certificates);
      if (error.code && error.code < 500) return;
    }
    await pause(RETRY, signal);
  }
}

// JSON has 64-bit numbers as strings.
function load({ time, seconds, requests, errors, inFlight, memoryBytes }) {
  return { time: Number(time), requests: Number(requests) / seconds, errors: Number(errors) / seconds, inFlight: Number(inFlight), memory: Number(memoryBytes) || null };
}

const perSecond = (value) => (value >= 100 ? Math.round(value).toLocaleString() : String(Number(value.toPrecision(2))));

function facadesTable(all) {
  const rows = all.map(({ facade, failing, loads }) => {
    const newest = loads.at(-1);
    return [h('strong', null, facade.name), facade.address, facade.build, h('span', { title: moment(facade.connectedSince) }, `${age(facade.connectedSince)} ago`),
      !newest ? '–' : failing.length ? mark(false, `fails: ${failing.join(', ')}`) : mark(true, 'ready'), facade.behind === '0' ? mark(true, 'up to date') : `${facade.behind} revisions`,
      newest ? perSecond(newest.requests) : '–', newest?.memory ? bytes(newest.memory) : '–'];
  });
  const refused = all.flatMap(({ facade }) => facade.refused.map((entry) => [facade.name, entry.key, entry.reason]));
  return [table('Facades', ['Name', 'Address', 'Version', 'Connected', 'Health', 'Behind', 'Requests/s', 'Memory'], rows),
    refused.length ? [h('h3', null, mark(false, 'Configuration that a facade rejects')), table('Rejected', ['Facade', 'Entry', 'Reason'], refused)] : null];
}

function plots({ facade, loads }) {
  return loads.length ? h('div.plots', null,
    plot(`Requests per second of ${facade.name}`, loads, [{ name: 'all', value: (one) => one.requests }, { name: '5xx', value: (one) => one.errors }], perSecond),
    plot(`Memory of ${facade.name}`, loads, [{ name: 'resident', value: (one) => one.memory }], bytes, 1024)) : null;
}

// Certificates are renewed with a third of their life left: those with less than a quarter, or thirty days, are marked.
function soon({ notBefore, notAfter }) {
  return Math.min(30 * 24 * 3600 * 1000, (Date.parse(notAfter) - Date.parse(notBefore)) / 4);
}

function certificatesTable(own, all) {
  const rows = [['Control service', own], ...all.map(({ facade, certificates }) => [facade.name, certificates])].flatMap(([whose, certificates]) => certificates.map((one) => ({ whose, ...one })));
  rows.sort((a, b) => Date.parse(a.notAfter) - Date.parse(b.notAfter));
  return table('Certificates', ['Owner', 'Use', 'Subject', 'Expires', 'In'], rows.map((one) => [one.whose, one.usage, one.subject, moment(one.notAfter), end(new Date(one.notAfter), soon(one))]));
}
