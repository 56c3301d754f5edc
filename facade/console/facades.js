// All facades: how each is, plots of its last hour, and when certificates end; followed as a stream of the control service.

import { h, replace, failure, mark, table } from './dom.js';
import { ApiError, jsonLines, pause } from './http.js';
import { plot } from './plot.js';
import { end } from './certs.js';
import { age, bytes, moment } from './time.js';

const WATCH = '/grpc/portico.config.v1.Config/WatchFacades';
const RETRY = 5000;
// So many samples of a facade are kept, and of so many facades they are plotted.
const KEPT = 400;
const PLOTTED = 20;

// `healthChanged` is called when other checks fail than before.
export async function followFacades(signal, into, certificates, healthChanged) {
  let failed;
  while (!signal.aborted) {
    const facades = new Map();
    let own = [], asked;
    const show = () => {
      asked ??= requestAnimationFrame(() => {
        asked = undefined;
        if (signal.aborted) return;
        const all = [...facades.values()].sort((a, b) => a.facade.name.localeCompare(b.facade.name));
        replace(into, facadesTable(all), all.slice(0, PLOTTED).map(plots));
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
        else facades.set(result.id, { ...result, loads: [...facades.get(result.id)?.loads ?? [], ...result.loads.map(load)].slice(-KEPT) });
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

// 64-bit numbers come as texts.
function load({ time, seconds, requests, errors, inFlight, memoryBytes }) {
  return { time: Number(time), requests: Number(requests) / seconds, errors: Number(errors) / seconds, inFlight: Number(inFlight), memory: Number(memoryBytes) || null };
}

const rate = (value) => (value >= 100 ? Math.round(value).toLocaleString() : String(Number(value.toPrecision(2))));

function facadesTable(all) {
  const rows = all.map(({ facade, failing, loads }) => {
    const newest = loads.at(-1);
    return [h('strong', null, facade.name), facade.address, facade.build, h('span', { title: moment(facade.connectedSince) }, `${age(facade.connectedSince)} ago`),
      !newest ? '–' : failing.length ? mark(false, `fails: ${failing.join(', ')}`) : mark(true, 'ready'), facade.behind === '0' ? mark(true, 'up to date') : `${facade.behind} revisions`,
      newest ? rate(newest.requests) : '–', newest?.memory ? bytes(newest.memory) : '–'];
  });
  const refused = all.flatMap(({ facade }) => facade.refused.map((entry) => [facade.name, entry.key, entry.reason]));
  return [table('Facades', ['Name', 'Address', 'Version', 'Connected', 'Health', 'Behind', 'Requests/s', 'Memory'], rows),
    refused.length ? [h('h3', null, mark(false, 'Entries that a facade refuses')), table('Refused', ['Facade', 'Entry', 'Why'], refused)] : null];
}

function plots({ facade, loads }) {
  return loads.length ? h('div.plots', null,
    plot(`Requests per second of ${facade.name}`, loads, [{ name: 'all', value: (one) => one.requests }, { name: '5xx', value: (one) => one.errors }], rate),
    plot(`Memory of ${facade.name}`, loads, [{ name: 'resident', value: (one) => one.memory }], bytes, 1024)) : null;
}

// What is renewed by itself has a third of its life left at least: marked is what has less than a quarter, or less than thirty days.
function soon({ notBefore, notAfter }) {
  return Math.min(30 * 24 * 3600 * 1000, (Date.parse(notAfter) - Date.parse(notBefore)) / 4);
}

function certificatesTable(own, all) {
  const rows = [['Control service', own], ...all.map(({ facade, certificates }) => [facade.name, certificates])].flatMap(([whose, certificates]) => certificates.map((one) => ({ whose, ...one })));
  rows.sort((a, b) => Date.parse(a.notAfter) - Date.parse(b.notAfter));
  return table('Certificates', ['Of', 'For', 'Subject', 'Ends', 'In'], rows.map((one) => [one.whose, one.usage, one.subject, moment(one.notAfter), end(new Date(one.notAfter), soon(one))]));
}
