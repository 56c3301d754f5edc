// The operator's page: health, the last hour of this facade as plots, all facades, and certificates.

import { h, s, perFrame, replace, failure, mark, section, table } from './dom.js';
import { getJson, getText, jsonLines, repeat, ApiError } from './http.js';
import { bytes, seconds, moment, since } from './time.js';
import { pageKeys } from './keys.js';
import { end } from './certs.js';

const WATCH = '/grpc/portico.config.v1.Config/WatchFacades';
// Samples per facade, and the number of facades with plots.
const MAX_SAMPLES = 400;
const MAX_PLOTTED = 20;
// The size and margins of a plot.
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [520, 150, 52, 18, 8];

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
function followSamples(into, signal, refresh) {
  return repeat(signal, async () => {
    let samples = [], count = 0;
    const show = perFrame(() => replace(into, draw(samples)), signal);
    replace(into, h('p.quiet', null, 'The facade takes its first sample within ten seconds of its start.'));
    for await (const sample of jsonLines('/console/data/last-hour?watch=true', { signal })) {
      if (sample.time === undefined) continue;
      samples = [...samples, sample].slice(-MAX_SAMPLES);
      show();
      if (++count % 6 === 0 && Date.now() / 1000 - sample.time < 5) refresh();
    }
  }, (error) => replace(into, failure(error)));
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
function followFacades(signal, into, certificates, healthChanged) {
  let failed;
  return repeat(signal, async () => {
    const facades = new Map();
    let own = [];
    const show = perFrame(() => {
      const all = [...facades.values()].sort((a, b) => a.facade.name.localeCompare(b.facade.name));
      replace(into, facadesTable(all), all.slice(0, MAX_PLOTTED).map(plots));
      replace(certificates, certificatesTable(own, all));
      const fails = JSON.stringify(all.filter(({ failing }) => failing.length).map(({ facade, failing }) => [facade.name, failing]));
      if (failed !== undefined && failed !== fails) healthChanged();
      failed = fails;
    }, signal);
    for await (const { result, error } of jsonLines(WATCH, { method: 'POST', type: 'application/json', body: '{}', signal })) {
      if (error) throw new ApiError(error.code ?? 500, error);
      if (result.left) facades.delete(result.id);
      else if (!result.facade) own = result.certificates;
      else facades.set(result.id, { ...result, loads: [...facades.get(result.id)?.loads ?? [], ...result.loads.map(load)].slice(-MAX_SAMPLES) });
      show();
    }
  }, (error) => {
    replace(into, failure(error));
    replace(certificates);
  });
}

// JSON has 64-bit numbers as strings.
function load({ time, seconds, requests, errors, inFlight, memoryBytes }) {
  return { time: Number(time), requests: Number(requests) / seconds, errors: Number(errors) / seconds, inFlight: Number(inFlight), memory: Number(memoryBytes) || null };
}

const perSecond = (value) => (value >= 100 ? Math.round(value).toLocaleString() : String(Number(value.toPrecision(2))));

function facadesTable(all) {
  const rows = all.map(({ facade, failing, loads }) => {
    const newest = loads.at(-1);
    return [h('strong', null, facade.name), facade.address, facade.build, since(facade.connectedSince, ' ago'),
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

// Samples have null or no value for what was not measured.
const isKnown = (value) => (value ?? null) !== null;

// The next larger of 1, 2, 5, 10, …; for bytes, the next power of two.
function roundUp(value, base) {
  if (!(value > 0)) return 1;
  if (base === 1024) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
}

// The shown span: up to an hour.
function spanOf(samples) {
  const seen = samples.length ? samples.at(-1).time - samples[0].time : 0;
  return [600, 1800, 3600].find((span) => span >= seen) ?? 3600;
}

// `series` are { name, value(sample) } in the order of their colors; `show` formats a value.
function plot(title, samples, series, show, base = 10) {
  const span = spanOf(samples);
  const now = samples.at(-1)?.time ?? Date.now() / 1000;
  const from = now - span;
  const seen = samples.filter((sample) => sample.time >= from);
  const values = series.flatMap(({ value }) => seen.map(value)).filter(isKnown);
  const top = roundUp(Math.max(0, ...values), base);
  const x = (time) => LEFT + ((time - from) / span) * (WIDTH - LEFT - 4);
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const grid = [0, 0.5, 1].map((share) => s('g', null,
    s('line.rule', { x1: LEFT, x2: WIDTH, y1: y(top * share), y2: y(top * share) }),
    s('text.tick', { x: LEFT - 6, y: y(top * share) + 3, 'text-anchor': 'end' }, show(top * share))));
  const times = [0, 1, 2, 3, 4].map((n) => s('text.tick', { x: x(from + (span * n) / 4), y: HEIGHT - 4, 'text-anchor': n === 4 ? 'end' : n ? 'middle' : 'start' },
    n === 4 ? 'now' : `−${Number(((span * (4 - n)) / 240).toFixed(1))} min`));
  const lines = series.map(({ value }, at) => line(seen, value, x, y, at));
  const newest = seen.at(-1);
  return h('figure.plot', { 'aria-label': title },
    h('figcaption', null, h('strong', null, title), series.map(({ name, value }, at) => {
      const last = newest && value(newest);
      return h(`span.legend.color-${at}`, null, name, ' ', h('b', null, isKnown(last) ? show(last) : '–'));
    })),
    s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title }, grid, times, lines));
}

// A line with gaps where values are missing.
function line(samples, value, x, y, at) {
  let path = '', drawing = false;
  for (const sample of samples) {
    const v = value(sample);
    if (!isKnown(v)) { drawing = false; continue; }
    path += `${drawing ? 'L' : 'M'}${x(sample.time).toFixed(1)} ${y(v).toFixed(1)}`;
    drawing = true;
  }
  const dots = samples.length === 1 && isKnown(value(samples[0])) ? s(`circle.dot.color-${at}`, { cx: x(samples[0].time), cy: y(value(samples[0])), r: 2.5 }) : null;
  return s('g', null, s(`path.line.color-${at}`, { d: path }), dots);
}
