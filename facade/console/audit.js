// The tail of the audit log of this process: the last events, and each new one as it comes.

import { h, replace, failure } from './dom.js';
import { jsonLines, pause } from './http.js';
import { Grid } from './grid.js';
import { gridKeys } from './grid_keys.js';
import { pageKeys } from './keys.js';
import { setQuery } from './router.js';
import { moment, seconds } from './time.js';
import { printYaml } from './yaml.js';

const KEPT = 5000;
const RETRY = 3000;

export async function audit({ main, query, signal }) {
  const detail = h('div.detail');
  const grid = new Grid({ label: 'Audit events', open: (row) => replace(detail, h('h2', null, row.event.auditID), h('pre.code', { tabindex: '0' }, printYaml(row.event))) });
  const filter = h('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter: user, verb, path …  /', value: query.get('filter') ?? '', oninput: () => { setQuery({ filter: filter.value }); show(); } });
  const state = h('span.state', { id: 'state' }), count = h('span.count'), problem = h('div');
  let paused = false;
  const hold = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => { paused = !paused; hold.setAttribute('aria-pressed', String(paused)); hold.textContent = paused ? 'Go on' : 'Pause'; show(); } }, 'Pause');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'Audit'), count, state, h('span.grow'), filter, hold), problem, grid.element, detail));
  grid.setColumns([
    { title: 'Time', cell: (row) => moment(row.event.stageTimestamp), width: '24ch' },
    { title: 'User', cell: (row) => row.event.user?.username, width: 'minmax(18ch,1fr)' },
    { title: 'Verb', cell: (row) => row.event.verb, width: '9ch' },
    { title: 'Code', cell: (row) => row.code && h(row.code < 400 ? 'span.good' : 'span.bad', null, String(row.code)), width: '7ch' },
    { title: 'Took', cell: (row) => seconds(row.took), width: '9ch' },
    { title: 'Request', cell: (row) => row.event.requestURI, width: 'minmax(30ch,4fr)' },
    { title: 'Stage', cell: (row) => row.event.stage, width: '18ch' },
  ]);
  let rows = [], asked;
  const show = () => {
    if (paused) return;
    const wanted = filter.value.toLowerCase();
    grid.setRows(wanted ? rows.filter((row) => row.text.includes(wanted)) : rows);
    count.textContent = String(grid.rows.length);
  };
  const later = () => { asked ??= requestAnimationFrame(() => { asked = undefined; if (!signal.aborted) show(); }); };
  signal.addEventListener('abort', () => grid.end());
  pageKeys({ ...gridKeys(grid, filter), p: ['Pause or go on', () => hold.click()] });
  grid.body.focus({ preventScroll: true });
  while (!signal.aborted) {
    try {
      state.textContent = '● Live';
      rows = [];
      for await (const event of jsonLines('/console/data/audit?watch=true', { signal })) {
        if (event.missed) problem.textContent = `${event.missed} events came faster than they were read.`;
        else rows = [row(event), ...rows].slice(0, KEPT);
        later();
      }
    } catch (error) {
      if (signal.aborted) return;
      state.textContent = '';
      replace(problem, failure(error));
      if (error.code) return;
    }
    state.textContent = '○ Reconnecting …';
    await pause(RETRY, signal);
  }
}

function row(event) {
  const took = (Date.parse(event.stageTimestamp) - Date.parse(event.requestReceivedTimestamp)) / 1000;
  const code = event.responseStatus?.code;
  return { id: `${event.auditID}/${event.stage}`, event, code, took: event.stage === 'RequestReceived' ? null : took, text: `${event.user?.username} ${event.verb} ${event.requestURI} ${code ?? ''} ${event.stage}`.toLowerCase() };
}
