// Lists and watches: all pages of a list, then every change; starts again with a list after 410 Gone.

import { perFrame } from './dom.js';
import { ApiError, getJson, jsonLines, pause, query } from './http.js';

const PAGE = 500;
// Rows that are loaded without asking; the user can load more.
export const ALL = 20000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;

function isGone(error) {
  return error instanceof ApiError && (error.code === 410 || error.status?.reason === 'Expired');
}

function revisionOf(object) {
  return object?.metadata?.resourceVersion || object?.rows?.[0]?.object?.metadata?.resourceVersion;
}

// Follows what `path` lists until `signal` aborts. `sink` gets begin(document) for the first page, page(document) for the
// others, changed(type, object) for every change, and state(text, error) when the connection changes.
export async function follow(path, parameters, { accept, watches = true, signal }, sink) {
  let wait = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      const revision = await listAll(path, parameters, accept, signal, sink);
      if (!watches) return sink.state('listed');
      wait = FIRST_PAUSE;
      await watchFrom(path, parameters, accept, signal, sink, revision);
    } catch (error) {
      if (signal.aborted) return;
      if (isGone(error)) continue;
      sink.state('lost', error);
      if (error instanceof ApiError && [401, 403, 404, 405, 400].includes(error.code)) return;
      await pause(wait, signal);
      wait = Math.min(wait * 2, LONGEST_PAUSE);
    }
  }
}

async function listAll(path, parameters, accept, signal, sink) {
  let continued = '', revision, rows = 0;
  do {
    const document = await getJson(path + query({ ...parameters, limit: PAGE, continue: continued }), { accept, signal });
    rows += (document.rows ?? document.items ?? []).length;
    if (revision === undefined) sink.begin(document);
    else sink.page(document);
    revision ??= document.metadata?.resourceVersion;
    continued = document.metadata?.continue;
    if (continued && rows >= ALL) await sink.full?.(rows, document.metadata.remainingItemCount, signal);
  } while (continued && !signal.aborted);
  return revision;
}

// Watches until the revision has expired (410); resumes after the end of a stream.
async function watchFrom(path, parameters, accept, signal, sink, revision) {
  let wait = FIRST_PAUSE;
  while (!signal.aborted) {
    const parts = { ...parameters, watch: 'true', allowWatchBookmarks: 'true', resourceVersion: revision };
    try {
      for await (const { type, object } of jsonLines(path + query(parts), { accept, signal, opened: () => sink.state('live') })) {
        if (type === 'ERROR') throw new ApiError(object.code ?? 500, object);
        revision = revisionOf(object) ?? revision;
        wait = FIRST_PAUSE;
        if (type !== 'BOOKMARK') sink.changed(type, object);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (isGone(error) || (error instanceof ApiError && error.code !== 429 && error.code < 500)) throw error;
      sink.state('lost', error);
      await pause(wait, signal);
      wait = Math.min(wait * 2, LONGEST_PAUSE);
    }
  }
}

// Follows a list of objects: `show` gets a map of them by uid, at most once a frame, and again after a failure.
export function followObjects(path, parameters, signal, show, failed, watches) {
  const objects = new Map();
  let problem;
  const shown = perFrame(() => {
    show(objects);
    if (problem) failed?.(problem);
  }, signal);
  const add = (document) => { for (const item of document.items ?? []) objects.set(item.metadata.uid, item); shown(); };
  return follow(path, parameters, { accept: 'application/json', watches, signal }, {
    begin(document) { objects.clear(); add(document); },
    page: add,
    changed(type, object) {
      if (type === 'DELETED') objects.delete(object.metadata.uid);
      else objects.set(object.metadata.uid, object);
      shown();
    },
    state(state, error) {
      if (error) failed?.(error);
      else if (problem) shown();
      problem = error;
    },
  });
}

