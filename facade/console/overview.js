// How the server is: health, what this facade measured during the last hour, all facades, certificates, what is stored.

import { h, replace, failure, mark, section, table } from './dom.js';
import { getJson, getText, jsonLines, pause } from './http.js';
import { followFacades } from './facades.js';
import { plot } from './plot.js';
import { bytes, seconds } from './time.js';
import { pageKeys } from './keys.js';

const KEPT = 400;
const RETRY = 5000;

export async function overview({ main, signal }) {
  const health = h('div'), plots = h('div.plots'), facades = h('div'), certificates = h('div'), stored = h('div'), version = h('span.quiet');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'Overview'), version),
    section('The last hour of this facade', plots),
    section('Facades', facades), section('Certificates', certificates),
    h('div.columns', null, section('Health', health), section('Objects', stored))));
  const readHealth = () => part(health, signal, showHealth);
  const refresh = () => {
    readHealth();
    part(stored, signal, showStored);
  };
  pageKeys({ r: ['Read health and counts again', refresh] });
  refresh();
  followSamples(plots, signal, refresh);
  followFacades(signal, facades, certificates, readHealth);
  const { gitVersion, platform } = await getJson('/version', { signal });
  version.textContent = `${gitVersion} · ${platform}`;
}

// Fills a part of the page; its failure is its own. What was asked for earlier does not replace what was asked for later.
async function part(into, signal, show) {
  const turn = into.turn = (into.turn ?? 0) + 1;
  const shown = await show(signal).catch(failure);
  if (!signal.aborted && into.turn === turn) replace(into, shown);
}

// A check that fails makes /readyz answer 500, with the same text.
async function showHealth(signal) {
  const text = await getText('/readyz?verbose', { accept: '*/*', signal }).catch((error) => {
    if (error.code === 500) return error.message;
    throw error;
  });
  const checks = text.split('\n').map((line) => /^\[([+-])\](\S+) (.*)$/.exec(line)).filter(Boolean);
  const failed = checks.filter(([, sign]) => sign === '-');
  return [h('p.large', null, mark(!failed.length, failed.length ? `${failed.length} of ${checks.length} checks fail` : 'Ready')),
    h('ul.checks', null, [...failed, ...checks.filter(([, sign]) => sign === '+')].map(([, sign, name, rest]) => h('li', null, mark(sign === '+', name), sign === '-' && ` ${rest}`)))];
}

async function showStored(signal) {
  const text = await getText('/metrics', { accept: 'text/plain', signal });
  const counts = [...text.matchAll(/^apiserver_(?:resource_objects|storage_objects)\{([^}]*)\} (\S+)$/gm)];
  const named = new Map(counts.map(([, labels, count]) => {
    const label = (name) => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    return [[label('resource'), label('group')].filter(Boolean).join('.'), Number(count)];
  }));
  const most = [...named].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
  const all = most.reduce((sum, [, count]) => sum + count, 0);
  return [h('p.large', null, `${all.toLocaleString()} objects`), h('p.quiet', null, 'As the control service counted them within the last minute.'),
    table('Objects by resource', ['Resource', 'Objects'], most.slice(0, 12).map(([name, count]) => [name, count.toLocaleString()]))];
}

// Plots are drawn anew with each sample. What is stored is counted once a minute, so it is read again with each sixth, and health with it; in between that is read
// when a facade says that a check of its own fails, or does no longer.
async function followSamples(into, signal, refresh) {
  while (!signal.aborted) {
    let samples = [], count = 0;
    try {
      replace(into, h('p.quiet', null, 'The first sample comes within ten seconds of the start of the facade.'));
      for await (const sample of jsonLines('/console/data/last-hour?watch=true', { signal })) {
        if (sample.time === undefined) continue;
        samples = [...samples, sample].slice(-KEPT);
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
  const number = (value) => (value >= 100 ? Math.round(value).toLocaleString() : String(Number(value.toPrecision(2))));
  return [
    plot('Requests per second', samples, [{ name: '2xx, 3xx', value: rate(0, 1, 2) }, { name: '4xx', value: rate(3) }, { name: '5xx', value: rate(4) }], number),
    plot('Latency', samples, [{ name: 'half', value: (one) => one.p50 }, { name: '90 %', value: (one) => one.p90 }, { name: '99 %', value: (one) => one.p99 }], seconds),
    plot('At a time', samples, [{ name: 'in flight', value: (one) => one.inFlight[0] + one.inFlight[1] }, { name: 'waiting', value: (one) => one.waiting }, { name: 'watches', value: (one) => one.longRunning }], number),
    plot('Memory', samples, [{ name: 'resident', value: (one) => one.memory }], bytes, 1024),
  ];
}
