// The audit log of this process: its latest events, and each new one as it is recorded.

import { button, h, perFrame, replace, failure } from './dom.js';
import { jsonLines, repeat } from './http.js';
import { Grid, filterField, gridKeys } from './grid.js';
import { pageKeys } from './keys.js';
import { setQuery } from './router.js';
import { moment, seconds } from './time.js';
import { printYaml } from './yaml.js';
import { highlighted } from './yaml_view.js';

const MAX_ROWS = 5000;

const COLUMNS = [
  { title: 'Time', cell: (row) => moment(row.event.stageTimestamp), width: '24ch' },
  { title: 'User', cell: (row) => row.event.user?.username, width: 'minmax(18ch,1fr)', narrow: true },
  { title: 'Verb', cell: (row) => row.event.verb, width: '9ch', narrow: true },
  { title: 'Code', cell: (row) => row.code && h(row.code < 400 ? 'span.good' : 'span.bad', null, String(row.code)), width: '7ch' },
  { title: 'Took', cell: (row) => seconds(row.took), width: '9ch' },
  { title: 'Request', cell: (row) => row.event.requestURI, width: 'minmax(30ch,4fr)', narrow: true },
  { title: 'Stage', cell: (row) => row.event.stage, width: '18ch' },
];

export async function audit({ main, query, signal }) {
  const page = new Audit(query, signal);
  replace(main, page.element);
  pageKeys({ ...gridKeys(page.grid, page.filter), p: ['Pause or resume', () => page.pause()], b: ['Include requests of browsers', () => page.browsers.click()] });
  page.grid.body.focus({ preventScroll: true });
  if (query.get('browsers') === 'true') page.browsers.click();
  await page.follow('');
}

class Audit {
  constructor(query, signal) {
    Object.assign(this, { signal, rows: [], isPaused: false, later: perFrame(() => this.show(), signal) });
    const detail = h('div.detail');
    this.grid = new Grid({ label: 'Audit events', signal, open: (row) => replace(detail, h('h2', null, row.event.auditID), h('pre.code', { tabindex: '0', 'aria-label': 'Event' }, highlighted(printYaml(row.event)))) });
    this.filter = filterField(() => { setQuery({ filter: this.filter.value }); this.show(); }, query.get('filter') ?? '', 'by user, verb, path');
    this.browsers = h('input', { type: 'checkbox', id: 'browsers', onchange: () => this.switchBrowsers() });
    this.state = h('span.state', { id: 'state' });
    this.count = h('span.count', { id: 'count' });
    this.problem = h('div');
    this.hold = button('Pause', () => this.pause(), { 'aria-pressed': 'false' });
    this.element = h('div.page', null, h('div.bar', null, h('h1', null, 'Audit'), this.count, this.state, h('span.grow'), this.filter,
      h('label.check', { for: 'browsers', title: 'Requests of this console and of other web pages' }, this.browsers, 'Include browsers'), this.hold), this.problem, this.grid.element, detail);
    this.grid.setColumns(COLUMNS);
  }

  // The server keeps requests of browsers, such as the console's own, apart from those of programs.
  switchBrowsers() {
    const { checked } = this.browsers;
    setQuery({ browsers: checked ? 'true' : '' });
    this.ofBrowsers?.abort();
    this.ofBrowsers = new AbortController();
    if (checked) this.follow('&browsers=true', AbortSignal.any([this.signal, this.ofBrowsers.signal]));
    this.rows = this.rows.filter(({ source }) => source === '');
    this.show();
  }

  pause() {
    this.isPaused = !this.isPaused;
    this.hold.setAttribute('aria-pressed', String(this.isPaused));
    this.hold.textContent = this.isPaused ? 'Resume' : 'Pause';
    this.show();
  }

  show() {
    if (this.isPaused) return;
    const wanted = this.filter.value.toLowerCase();
    this.grid.setRows(this.rows.filter((row) => row.text.includes(wanted)));
    this.count.textContent = String(this.grid.rows.length);
  }

  follow(source, signal = this.signal) {
    return repeat(signal, async () => {
      this.rows = this.rows.filter((row) => row.source !== source);
      for await (const event of jsonLines(`/console/data/audit?watch=true${source}`, { signal, opened: () => { this.state.textContent = '● Live'; } })) {
        if (event.missed) this.problem.textContent = `${event.missed} events are missing: they arrived faster than they were read.`;
        else this.add(event, source);
        this.later();
      }
      this.state.textContent = '○ Reconnecting …';
    }, (error) => {
      this.state.textContent = error.code < 500 ? '' : '○ Reconnecting …';
      replace(this.problem, error.code === 404 ? h('p.quiet', null, error.message) : failure(error));
    });
  }

  // Newest first; events of another stream may be newer than this one.
  add(event, source) {
    const row = rowOf(event, source);
    const at = this.rows.findIndex(({ time }) => time <= row.time);
    this.rows.splice(at < 0 ? this.rows.length : at, 0, row);
    this.rows.length = Math.min(this.rows.length, MAX_ROWS);
  }
}

function rowOf(event, source) {
  const took = (Date.parse(event.stageTimestamp) - Date.parse(event.requestReceivedTimestamp)) / 1000;
  const code = event.responseStatus?.code;
  return { id: `${event.auditID}/${event.stage}`, event, source, code, time: event.stageTimestamp, took: event.stage === 'RequestReceived' ? null : took,
    text: `${event.user?.username} ${event.verb} ${event.requestURI} ${code ?? ''} ${event.stage}`.toLowerCase() };
}
