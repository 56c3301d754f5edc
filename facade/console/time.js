// Times, durations and sizes for display.

import { h } from './dom.js';

// `5d4h`, as kubectl writes ages.
export function age(since, now = Date.now()) {
  const at = Date.parse(since);
  return Number.isNaN(at) ? '' : duration((now - at) / 1000);
}

export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const parts = (large, unit, small, rest) => (small ? `${large}${unit}${small}${rest}` : `${large}${unit}`);
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return parts(m, 'm', s % 60, 's');
  if (m < 180) return `${m}m`;
  const hours = Math.floor(m / 60);
  if (hours < 8) return parts(hours, 'h', m % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return parts(days, 'd', hours % 24, 'h');
  return days < 730 ? `${days}d` : `${Math.floor(days / 365)}y`;
}

export function moment(text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? '' : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

// The age of a time, which is shown as a tooltip.
export function since(text, suffix = '') {
  return text ? h('span', { title: moment(text) }, age(text), suffix) : '';
}

export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) { count /= 1024; at++; }
  return `${count >= 100 || at === 0 ? Math.round(count) : count.toFixed(1)} ${units[at]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return '–';
  return value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms` : `${value.toFixed(1)} s`;
}

const UNITS = { d: 86400, h: 3600, m: 60, s: 1 };

// A revision, a time, or a duration before now (2h30m), as { revision } or { time } in Unix seconds.
export function pointInTime(text, now = Date.now()) {
  const trimmed = text.trim();
  if (/^[1-9]\d*$/.test(trimmed)) return { revision: trimmed };
  const ago = [...trimmed.matchAll(/(\d+)([dhms])/g)];
  if (ago.length && ago.map(([whole]) => whole).join('') === trimmed) {
    return { time: String(Math.floor(now / 1000) - ago.reduce((sum, [, count, unit]) => sum + count * UNITS[unit], 0)) };
  }
  const at = Date.parse(trimmed);
  if (Number.isNaN(at)) throw new Error('Enter a revision, a time such as 2026-01-31T12:00, or a duration such as 15m or 2h30m.');
  return { time: String(Math.floor(at / 1000)) };
}
