// Requests to the API, with the token of the session if there is one, and streams of JSON lines.

import { parseJson, printJson } from './json.js';
import { session, forget } from './session.js';

// A refusal of the server: `status` is its Status, as far as it sent one.
export class ApiError extends Error {
  constructor(code, status, text) {
    super(status?.message || text || `the server answered ${code}`);
    this.code = code;
    this.status = { code, ...(status ?? {}) };
  }
}

export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

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
  } catch { /* It is text for people. */ }
  if (response.status === 401 && session.user) forget();
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

// Each line of an answer that is JSON lines, as it comes.
export async function* jsonLines(path, options) {
  const response = await fetchApi(path, options);
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

// Resolves after a while, or when it is no longer wanted.
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
