// Requests to the API, with the token of the session if it has one; exact JSON; streams of JSON lines.

import { session, forget } from './session.js';

// An error response; `status` is the Status object, or at least its code.
export class ApiError extends Error {
  constructor(code, status, text) {
    super(status?.message || text || `the server answered ${code}`);
    this.code = code;
    this.status = { code, ...(status ?? {}) };
  }
}

const AT_ONCE = 6;
const RETRY = 3000;
export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
export const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json';
export const METADATA_LIST = METADATA.replace(';v', 'List;v');

export async function fetchApi(path, { method = 'GET', accept = 'application/json', type, body, signal } = {}) {
  const headers = { accept };
  const token = session.token();
  if (token) headers.authorization = `Bearer ${token}`;
  if (type) headers['content-type'] = type;
  const response = await fetch(path, { method, headers, body, signal, credentials: 'same-origin', cache: 'no-store', redirect: 'error' });
  if (response.ok) return response;
  const text = await response.text();
  let status;
  try {
    const parsed = JSON.parse(text);
    if (parsed?.kind === 'Status') status = parsed;
  } catch { /* A plain text. */ }
  // A late response to an earlier token does not end the session.
  if (response.status === 401 && session.user && token === session.token()) forget();
  throw new ApiError(response.status, status, text.trim());
}

export async function getJson(path, options) {
  return parseJson(await getText(path, options));
}

export async function getText(path, options) {
  return (await fetchApi(path, options)).text();
}

export async function postJson(path, value, options) {
  const response = await fetchApi(path, { method: 'POST', type: 'application/json', body: printJson(value), ...options });
  return parseJson(await response.text());
}

// A method of the control service.
export function call(method, message, options) {
  return postJson(`/grpc/${method}`, message, options);
}

// The lines of a response that consists of JSON lines, as they arrive. `opened` is called when it starts.
export async function* jsonLines(path, options) {
  const response = await fetchApi(path, options);
  options.opened?.();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) if (line) yield parseJson(line);
  }
}

export function query(values) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return set.length ? `?${new URLSearchParams(set)}` : '';
}

// Resolves after a time, or when `signal` aborts.
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

// Runs `attempt` again and again until `signal` aborts or the server refuses it.
export async function repeat(signal, attempt, failed) {
  while (!signal.aborted) {
    try {
      await attempt();
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      if (error.code < 500) return;
    }
    await pause(RETRY, signal);
  }
}

// Runs requests for many items, a few at a time.
export async function forEach(items, signal, run) {
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined && !signal?.aborted; item = waiting.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

// Only texts with long digit strings need the slower parser.
const LONG = /\d{16}/;

function exact(key, value, context) {
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value);
  return isRounded && /^-?\d+$/.test(context?.source ?? '') ? BigInt(context.source) : value;
}

export function parseJson(text) {
  return LONG.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

export function printJson(value) {
  return JSON.stringify(value, (key, item) => (typeof item === 'bigint' ? JSON.rawJSON(String(item)) : item));
}
