// The first tab of an object: labels, owners, conditions, status, data, events and related objects.

import { button, failure, h, mark, replace, section, table } from './dom.js';
import { listLink } from './discovery.js';
import { followObjects } from './watch.js';
import { decode, hidden, isSecret, printYaml } from './yaml.js';
import { age, moment, since } from './time.js';
import { dependents, owners } from './owners.js';
import { copyButton, highlighted } from './yaml_view.js';

const LONG = 200;

export function summary(view, into, signal) {
  const facts = h('div.stack'), owned = h('div'), related = h('div'), seen = h('div');
  const draw = () => replace(facts, overview(view), conditions(view.object), data(view, draw), statusOf(view.object));
  const look = async () => {
    replace(related, h('p.quiet', null, 'Searching …'));
    replace(related, await dependents(view.kind, view.object, signal).catch(failure));
  };
  replace(into, h('div.stack', null, facts, h('div.columns', null,
    section('Owners', owned), section('Dependents', related)), section('Events', seen)));
  draw();
  view.changes.addEventListener('change', () => view.isThere && draw(), { signal });
  owners(view.object, signal).catch(failure).then((tree) => replace(owned, tree ?? h('p.quiet', null, 'No owners.')));
  // Dependents of a cluster-scoped object can be anywhere: that is a search through all objects.
  if (view.kind.namespaced) look();
  else replace(related, button('Search', look, { id: 'dependents' }));
  events(view.object, seen, signal);
}

function overview({ object, kind }) {
  const { metadata } = object;
  const labels = Object.entries(metadata.labels ?? {}).map(([key, value]) =>
    h('a.chip', { href: `${listLink(kind, metadata.namespace)}${metadata.namespace ? '&' : '?'}labels=${encodeURIComponent(`${key}=${value}`)}`, title: 'Objects with this label' }, `${key}=${value}`));
  const { spec, status } = object;
  const containers = (spec?.jobTemplate?.spec ?? spec)?.template?.spec?.containers ?? spec?.containers;
  const images = Array.isArray(containers) ? containers.map(({ image }) => image).join(', ') : '';
  const facts = [
    isSecret(object) && ['Type', object.type],
    images && Number.isInteger(spec.replicas) && ['Replicas', `${status?.readyReplicas ?? 0} of ${spec.replicas} ready`],
    images && ['Image', images],
    ['Created', `${moment(metadata.creationTimestamp)} · ${age(metadata.creationTimestamp)} ago`],
    metadata.deletionTimestamp && ['Deleted', h('span.bad', null, `requested ${age(metadata.deletionTimestamp)} ago`)],
    labels.length && ['Labels', labels],
    metadata.finalizers && ['Finalizers', metadata.finalizers.join(', ')],
    ['Revision', [metadata.resourceVersion, metadata.generation && ` · generation ${metadata.generation}`]],
  ].filter(Boolean);
  const annotations = Object.entries(hidden(object).metadata.annotations ?? {});
  return section('Overview', h('dl.facts', null, facts.map(([name, value]) => [h('dt', null, name), h('dd', null, value)])),
    annotations.length ? h('details', null, h('summary', null, `Annotations (${annotations.length})`),
      h('dl.facts', null, annotations.map(([key, value]) => [h('dt', null, key), h('dd', null, value)]))) : null);
}

// Conditions whose `True` is a problem, such as Stalled or MemoryPressure, get no mark.
function conditions({ status }) {
  const all = Array.isArray(status?.conditions) ? status.conditions : [];
  const good = /^(Ready|Available|Established|NamesAccepted|Complete|Completed|Progressing|Synced|Healthy|Initialized|PodScheduled|ContainersReady|SuccessCriteriaMet)$/;
  return all.length ? section('Conditions', table('Conditions', ['Type', 'Status', 'Reason', 'Message', 'Since'], all.map((one) => [
    h('strong', null, one.type), good.test(one.type) && ['True', 'False'].includes(one.status) ? mark(one.status === 'True', one.status) : one.status, one.reason, one.message,
    since(one.lastTransitionTime)]))) : null;
}

function statusOf({ status }) {
  const { conditions: ignored, ...rest } = status ?? {};
  return Object.keys(rest).length ? section('Status', h('pre.code.plain-code', { tabindex: '0', 'aria-label': 'Status' }, highlighted(printYaml(rest).trimEnd()))) : null;
}

// The entries of a ConfigMap or a Secret.
function data(view, draw) {
  const { object } = view;
  const entries = Object.entries({ ...object.data, ...object.binaryData });
  if (!entries.length || object.apiVersion !== 'v1' || !['ConfigMap', 'Secret'].includes(object.kind)) return null;
  const shown = (key, value) => (isSecret(object) ? secretValue(view, key, value, draw) : [longText(object.data?.[key] === undefined ? '(binary)' : value), ' ', copyButton(() => value, key)]);
  return section('Data', h('dl.facts', { id: 'data' }, entries.map(([key, value]) => [h('dt', null, key), h('dd', null, shown(key, value))])));
}

function secretValue(view, key, value, draw) {
  const isShown = view.revealed.has(key);
  const { size, text } = decode(value);
  const toggle = () => {
    if (!view.revealed.delete(key)) view.revealed.add(key);
    draw();
    document.getElementById(`reveal-${key}`)?.focus();
  };
  return [isShown ? longText(text ?? value) : h('span.quiet', null, `•••••• ${size} bytes`), ' ',
    button(isShown ? 'Hide' : 'Reveal', toggle, { id: `reveal-${key}`, 'aria-label': `${isShown ? 'Hide' : 'Reveal'} ${key}` }), ' ', copyButton(() => text ?? value, key), isShown && text === undefined && h('span.quiet', null, ' binary, as base64')];
}

function longText(text) {
  return text.length > LONG || text.includes('\n') ? h('pre.code.plain-code', { tabindex: '0', 'aria-label': 'Value' }, text) : h('code', null, text);
}

function events(object, into, signal) {
  replace(into, h('p.quiet', null, 'Loading …'));
  const path = `/api/v1/namespaces/${encodeURIComponent(object.metadata.namespace || 'default')}/events`;
  followObjects(path, { fieldSelector: `involvedObject.uid=${object.metadata.uid}` }, signal, (found) => {
    const last = (event) => event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;
    const sorted = [...found.values()].sort((a, b) => Date.parse(last(b)) - Date.parse(last(a)));
    replace(into, table('Events', ['Last seen', 'Type', 'Reason', 'Message', 'From', 'Count'], sorted.map((event) => [
      since(last(event), ' ago'),
      h(event.type === 'Warning' ? 'span.bad' : 'span', null, event.type), event.reason, event.message,
      event.source?.component || event.reportingComponent || '', String(event.series?.count ?? event.count ?? 1),
    ])));
  }, (error) => replace(into, failure(error)));
}
