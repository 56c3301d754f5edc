// Access: who can do something, whether somebody may, and what the user of this session may do.

import { h, replace, failure, mark, section, table } from './dom.js';
import { postJson } from './http.js';
import { resources } from './discovery.js';
import { session } from './session.js';
import { setQuery } from './router.js';
import { pageKeys } from './keys.js';
import { whoCan } from './rbac.js';

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const API = '/apis/authorization.k8s.io/v1';

export async function access({ main, query, signal }) {
  const known = await resources();
  if (signal.aborted) return;
  const names = [...new Set(known.flatMap((one) => {
    const full = (sub) => `${one.name}${sub ? `/${sub}` : ''}${one.group ? `.${one.group}` : ''}`;
    return [full(), ...one.subresources.map(full)];
  }))].sort();
  const field = (id, label, placeholder, list) => {
    const input = h('input', { id, placeholder, list, value: query.get(id) ?? '', spellcheck: 'false', autocomplete: 'off' });
    return [input, h('div.field', null, h('label', { for: id }, label), input)];
  };
  const [verb, verbField] = field('verb', 'Verb', 'get', 'verbs');
  const [what, whatField] = field('resource', 'Resource or path', 'pods, deployments.apps, pods/log, /metrics', 'resource-names');
  const [namespace, namespaceField] = field('namespace', 'Namespace', 'all of them');
  const [name, nameField] = field('name', 'Name', 'any');
  const [user, userField] = field('user', 'User', 'whoever may');
  const [groups, groupsField] = field('groups', 'Groups', 'dev, ops');
  const result = h('div', { id: 'who-can', 'aria-live': 'polite' });
  const ask = async (event) => {
    event?.preventDefault();
    setQuery({ verb: verb.value, resource: what.value, namespace: namespace.value, name: name.value, user: user.value, groups: groups.value });
    replace(result, h('p.quiet', null, 'Asking …'));
    try {
      const asked = read(verb.value, what.value, namespace.value, name.value);
      replace(result, user.value ? await mayThey(asked, user.value, groups.value, signal) : await whoMay(asked, signal));
    } catch (error) {
      replace(result, failure(error));
    }
  };
  const own = h('div');
  replace(main, h('div.page', null, h('div.bar', null, h('h1', null, 'Access')),
    section('Who can?', h('form.fields', { onsubmit: ask }, verbField, whatField, namespaceField, nameField, userField, groupsField, h('button.primary', { type: 'submit', id: 'ask' }, 'Ask')),
      h('datalist', { id: 'verbs' }, VERBS.map((value) => h('option', { value }))), h('datalist', { id: 'resource-names' }, names.map((value) => h('option', { value }))), result),
    section(`What can ${session.user?.username ?? 'I'} do?`, own)));
  pageKeys({ '/': ['Ask who can', () => verb.focus()] });
  ownRules(own, query.get('namespace') || 'default', signal);
  if (query.get('verb') && query.get('resource')) ask();
}

// `pods/log`, `deployments.apps`, or a path.
function read(verb, what, namespace, name) {
  if (!verb || !what) throw new Error('A verb and a resource or a path are needed.');
  if (what.startsWith('/')) return { verb, path: what };
  const [full, group] = what.includes('.') ? [what.slice(0, what.indexOf('.')), what.slice(what.indexOf('.') + 1)] : [what, ''];
  const [resource, subresource = ''] = full.split('/');
  return { verb, group, resource, subresource, namespace, name };
}

async function whoMay(asked, signal) {
  const found = await whoCan(asked, signal);
  const [mine] = await Promise.all([postJson(`${API}/selfsubjectaccessreviews`, { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: spec(asked) }, { signal })]);
  return [h('p', null, `${session.user.username}: `, verdict(mine.status)),
    table('Who can', ['Kind', 'Name', 'By role', 'By binding'], found.map((one) => [one.kind, h('strong', null, one.name), one.role, one.binding])),
    h('p.quiet', null, 'By the roles and bindings that are stored. Other authorizers (Node, webhooks, policies) are not in this list; ask about one user to ask them all.')];
}

function spec({ verb, group, resource, subresource, namespace, name, path }) {
  return path ? { nonResourceAttributes: { verb, path } } : { resourceAttributes: { verb, group, resource, subresource, namespace, name } };
}

async function mayThey(asked, user, groups, signal) {
  const list = groups.split(',').map((one) => one.trim()).filter(Boolean);
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { ...spec(asked), user, groups: [...list, 'system:authenticated'] } };
  const { status } = await postJson(`${API}/subjectaccessreviews`, review, { signal });
  return h('p.large', null, `${user}: `, verdict(status));
}

function verdict({ allowed, denied, reason, evaluationError }) {
  return [mark(allowed, allowed ? 'allowed' : denied ? 'denied' : 'not allowed'), (reason || evaluationError) && h('span.quiet', null, ` ${[reason, evaluationError].filter(Boolean).join(' · ')}`)];
}

async function ownRules(into, namespace, signal) {
  const input = h('input', { 'aria-label': 'Namespace of my rules', value: namespace, spellcheck: 'false' });
  const shown = h('div');
  const ask = async (event) => {
    event?.preventDefault();
    try {
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: input.value } };
      const { status } = await postJson(`${API}/selfsubjectrulesreviews`, review, { signal });
      replace(shown, status.incomplete && h('p.warning', null, `The list is not complete. ${status.evaluationError ?? ''}`),
        table('My rules', ['Verbs', 'Groups', 'Resources', 'Names'], (status.resourceRules ?? []).map((rule) => [
          rule.verbs.join(', '), (rule.apiGroups ?? []).map((group) => group || 'core').join(', '), (rule.resources ?? []).join(', '), (rule.resourceNames ?? []).join(', ') || 'any'])),
        table('My paths', ['Verbs', 'Paths'], (status.nonResourceRules ?? []).map((rule) => [rule.verbs.join(', '), rule.nonResourceURLs.join(', ')])));
    } catch (error) {
      replace(shown, failure(error));
    }
  };
  replace(into, h('form.fields', { onsubmit: ask }, h('div.field', null, h('label', null, 'In namespace ', input)), h('button', { type: 'submit' }, 'Show')), shown);
  ask();
}
