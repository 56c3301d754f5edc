// Plots over time as SVG: lines on one scale, with the newest values in the legend.

import { h, s } from './dom.js';

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [520, 150, 52, 18, 8];

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

// `series` are { name, value(sample) } in the order of their colours; `show` formats a value.
export function plot(title, samples, series, show, base = 10) {
  const span = spanOf(samples);
  const now = samples.at(-1)?.time ?? Date.now() / 1000;
  const from = now - span;
  const seen = samples.filter((sample) => sample.time >= from);
  const values = series.flatMap(({ value }) => seen.map(value)).filter((value) => value !== null && value !== undefined);
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
      return h(`span.legend.color-${at}`, null, name, ' ', h('b', null, last === undefined || last === null ? '–' : show(last)));
    })),
    s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title }, grid, times, lines));
}

// A line with gaps where values are missing.
function line(samples, value, x, y, at) {
  let path = '', drawing = false;
  for (const sample of samples) {
    const v = value(sample);
    if (v === null || v === undefined) { drawing = false; continue; }
    path += `${drawing ? 'L' : 'M'}${x(sample.time).toFixed(1)} ${y(v).toFixed(1)}`;
    drawing = true;
  }
  const dots = samples.length === 1 && value(samples[0]) !== null ? s(`circle.dot.color-${at}`, { cx: x(samples[0].time), cy: y(value(samples[0])), r: 2.5 }) : null;
  return s('g', null, s(`path.line.color-${at}`, { d: path }), dots);
}
