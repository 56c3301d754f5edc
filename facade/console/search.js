// Search: `:` finds kinds by name or short name, `/` objects by name in the chosen namespace.

import { forEach, getJson, METADATA_LIST } from './http.js';
import { fullName, listLink, objectLink, pathOf, resources } from './discovery.js';
import { openPalette, ranked } from './palette.js';
import { chosen } from './namespace.js';
import { listable } from './rights.js';
import { go } from './router.js';

// Objects of a kind whose names are searched.
const MAX_OF_KIND = 500;
// Names of these objects are generated and never searched for.
const SKIPPED = ['events', 'events.events.k8s.io'];

async function searchable() {
  return listable((await resources()).filter((one) => one.preferred && one.verbs.includes('list')), chosen());
}

const kindTexts = (kind) => [kind.kind, kind.name, fullName(kind), ...kind.shortNames];

function kindChoice(kind) {
  return { label: kind.kind, detail: [fullName(kind), ...kind.shortNames].join(', '), choose: () => go(listLink(kind)) };
}

export function searchKinds() {
  let kinds = [];
  openPalette({
    label: 'Go to a kind', placeholder: 'Kind, resource or short name',
    start: async (redraw) => { kinds = await searchable(); redraw(); },
    choices: (text) => ranked(kinds, text.trim(), kindTexts).map(kindChoice),
  });
}

export function searchObjects() {
  const where = chosen() ? `in namespace ${chosen()}` : 'in all namespaces';
  const names = new Names();
  openPalette({ label: `Search objects ${where}`, placeholder: 'Part of a name', start: (redraw, signal) => names.load(redraw, signal), choices: (text) => names.matching(text.trim(), where) });
}

// The names of all objects in the chosen namespace, which arrive kind by kind.
class Names {
  found = [];
  kinds = [];
  isLoading = true;
  // The number of kinds with more objects than are searched.
  cut = 0;
  // True if kinds could not be listed.
  failed = false;

  async load(redraw, signal) {
    this.kinds = await searchable().catch(() => { this.failed = true; return []; });
    await forEach(this.kinds.filter((kind) => !SKIPPED.includes(fullName(kind))), signal, async (kind) => {
      const { items = [], metadata } = await getJson(`${pathOf(kind, chosen())}?limit=${MAX_OF_KIND}`, { accept: METADATA_LIST, signal }).catch(() => { this.failed = true; return {}; });
      for (const { metadata: { name, namespace } } of items) this.found.push({ kind, name, namespace });
      if (metadata?.continue) this.cut++;
      if (!signal.aborted) redraw();
    });
    this.isLoading = false;
    if (!signal.aborted) redraw();
  }

  matching(text, where) {
    const all = text ? [...ranked(this.kinds, text, kindTexts).slice(0, 3).map(kindChoice), ...ranked(this.found, text, ({ name }) => [name]).map(objectChoice)] : [];
    if (this.isLoading) all.note = `Reading names ${where} …`;
    else if (!text) all.note = `Type a part of a name. ${this.found.length} objects ${where} are searched.`;
    else if (this.failed) all.note = 'Some kinds could not be searched.';
    else if (this.cut) all.note = `Of ${this.cut} kinds only the first ${MAX_OF_KIND} objects were searched: choose a namespace to search all.`;
    return all;
  }
}

function objectChoice({ kind, name, namespace }) {
  return { label: name, detail: [kind.kind, namespace].filter(Boolean).join(' · '), choose: () => go(objectLink(kind, namespace, name)) };
}
