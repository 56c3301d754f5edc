// Reads names and expiry dates of certificates from PEM, with as little of X.509 as that needs.

import { mark } from './dom.js';
import { age, duration } from './time.js';

// Certificates that expire within this time are marked.
const SOON = 30 * 24 * 3600 * 1000;

function element(bytes, at) {
  const tag = bytes[at];
  let length = bytes[at + 1], start = at + 2;
  if (length & 0x80) {
    const octets = length & 0x7f;
    if (octets > 4) throw new Error('not DER');
    length = 0;
    for (let n = 0; n < octets; n++) length = length * 256 + bytes[start++];
  }
  if (!(start + length <= bytes.length)) throw new Error('not DER');
  return { tag, start, end: start + length };
}

function children(bytes, { start, end }) {
  const out = [];
  for (let at = start; at < end; at = out.at(-1).end) out.push(element(bytes, at));
  return out;
}

function time(bytes, { tag, start, end }) {
  const text = String.fromCharCode(...bytes.subarray(start, end));
  const full = tag === 0x17 ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : text;
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full) ?? [];
  return year && new Date(Date.UTC(year, month - 1, day, hour, minute, second));
}

// The last common name in a distinguished name (2.5.4.3).
function commonName(bytes, name) {
  let found = '';
  for (const set of children(bytes, name)) {
    for (const pair of children(bytes, set)) {
      const [type, value] = children(bytes, pair);
      if (type.end - type.start === 3 && bytes[type.start] === 0x55 && bytes[type.start + 1] === 4 && bytes[type.start + 2] === 3) {
        found = new TextDecoder().decode(bytes.subarray(value.start, value.end));
      }
    }
  }
  return found;
}

// { name, until } of each certificate; an unreadable one has no `until`.
export function certificates(pem) {
  const blocks = [...pem.matchAll(/-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/g)];
  return blocks.map(([, base64]) => {
    try {
      const bytes = Uint8Array.from(atob(base64.replace(/\s/g, '')), (c) => c.charCodeAt(0));
      const [body] = children(bytes, element(bytes, 0));
      const parts = children(bytes, body);
      const first = parts[0].tag === 0xa0 ? 1 : 0;
      const [, until] = children(bytes, parts[first + 3]);
      return { name: commonName(bytes, parts[first + 4]), until: time(bytes, until) };
    } catch {
      return { name: 'cannot be read' };
    }
  });
}

// The time that is left until expiry, marked if it is short.
export function end(until, soon = SOON) {
  const left = until - Date.now();
  if (left <= 0) return mark(false, `expired ${age(until)} ago`);
  const text = duration(left / 1000);
  return left > soon ? mark(true, text) : mark(false, `soon: ${text}`);
}
