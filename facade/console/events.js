// The events about an object, as they come.

import { h, replace, failure, table } from './dom.js';
import { followObjects } from './watch.js';
import { age, moment } from './time.js';

export function events(object, into, signal) {
  replace(into, h('p.quiet', null, 'Loading …'));
  const path = `/api/v1/namespaces/${encodeURIComponent(object.metadata.namespace || 'default')}/events`;
  followObjects(path, { fieldSelector: `involvedObject.uid=${object.metadata.uid}` }, signal, (found) => {
    const last = (event) => event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;
    const sorted = [...found.values()].sort((a, b) => Date.parse(last(b)) - Date.parse(last(a)));
    replace(into, table('Events', ['Last seen', 'Type', 'Reason', 'Message', 'From', 'Count'], sorted.map((event) => [
      h('span', { title: moment(last(event)) }, `${age(last(event))} ago`),
      h(event.type === 'Warning' ? 'span.bad' : 'span', null, event.type), event.reason, event.message,
      event.source?.component || event.reportingComponent || '', String(event.series?.count ?? event.count ?? 1),
    ])));
  }, (error) => replace(into, failure(error)));
}
