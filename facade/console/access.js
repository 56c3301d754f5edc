// Access: who has a permission, whether one user has it, and all permissions of the user of this session.

import { h, replace, failure, mark, section, table } from './dom.js';
import { postJson } from './http.js';
import { fullName, objectLink, resources } from './discovery.js';
import { setQuery } from './router.js';
import { pageKeys } from './keys.js';
import { adopt, chosen } from './namespace.js';
import { whoCan, AUTHORIZATION, review, rules } from './rights.js';

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
// Frequent questions: [text, verb, resource].
const QUESTIONS = [
  ['delete Secrets', 'delete', 'secrets'], ['read Secrets', 'get', 'secrets'], ['run commands in Pods', 'create', 'pods/exec'], ['change roles', 'update', 'clusterroles.rbac.authorization.k8s.io'],
  ['impersonate users', 'impersonate', 'users'], ['delete Namespaces', 'delete', 'namespaces'], ['do everything', '*', '*.*'],
];

export async function access({ main, query, signal }) {
  const known = await resources();
  if (signal.aborted) return;
  const page = new Access(query, known, signal);
  replace(main, page.element);
  pageKeys({ f: ['Ask who can', () => page.what.focus()] });
  page.ownRules();
  if (query.get('resource')) page.ask();
}

class Access {
  constructor(query, known, signal) {
    Object.assign(this, { known, signal });
    const field = (id, label, value, placeholder, list) => {
      this[id] = h('input', { id, placeholder, list, value: query.get(id === 'what' ? 'resource' : id) ?? value, spellcheck: 'false', autocomplete: 'off' });
      return h('div.field', null, h('label', { for: id }, label), this[id]);
    };
    this.result = h('div', { id: 'who-can', 'aria-live': 'polite' });
    this.own = h('div');
    this.mine = h('input', { id: 'my-namespace', value: chosen() || 'default', spellcheck: 'false' });
    const options = (id, values) => h('datalist', { id }, values.map((value) => h('option', { value })));
    this.element = h('div.page', null, h('div.bar', null, h('h1', null, 'Access')),
      section('Who can?', h('p.chips', null, 'Who can … ', QUESTIONS.map(([text, verb, resource]) => h('a.chip', { href: `#/access?${new URLSearchParams({ verb, resource })}` }, text))),
        h('form.fields', { onsubmit: (event) => this.ask(event) }, field('verb', 'Verb', 'get', '', 'verbs'), field('what', 'Resource or path', '', 'e.g. pods, pods/log, /metrics', 'resource-names'),
          field('namespace', 'Namespace', chosen(), 'all namespaces'), field('name', 'Name', '', 'any name'), field('user', 'Only this user', '', 'all users'), field('groups', 'in these groups', '', 'e.g. dev, ops'),
          h('button.primary', { type: 'submit', id: 'ask' }, 'Ask')),
        options('verbs', VERBS), options('resource-names', namesOf(known)), this.result),
      section('What can I do?', h('form.fields', { onsubmit: (event) => this.ownRules(event) },
        h('div.field', null, h('label', { for: 'my-namespace' }, 'In namespace'), this.mine), h('button', { type: 'submit' }, 'Show')), this.own));
  }

  async ask(event) {
    event?.preventDefault();
    const [verb, resource, namespace, name, user, groups] = [this.verb, this.what, this.namespace, this.name, this.user, this.groups].map((input) => input.value.trim());
    adopt(namespace);
    setQuery({ verb, resource, namespace, name, user, groups });
    replace(this.result, h('p.quiet', null, 'Loading …'));
    try {
      const asked = parse(verb, resource, namespace, name, this.known);
      replace(this.result, user ? await hasUser(asked, user, groups, this.signal) : await haveAll(asked, this.signal));
    } catch (error) {
      replace(this.result, failure(error));
    }
  }

  async ownRules(event) {
    event?.preventDefault();
    try {
      const status = await rules(this.mine.value, { signal: this.signal });
      replace(this.own, status.incomplete && h('p.warning', null, `The list is not complete. ${status.evaluationError ?? ''}`),
        table('My rules', ['Verbs', 'Groups', 'Resources', 'Names'], (status.resourceRules ?? []).map((rule) => [
          rule.verbs.join(', '), (rule.apiGroups ?? []).map((group) => group || 'core').join(', '), (rule.resources ?? []).join(', '), (rule.resourceNames ?? []).join(', ') || 'any'])),
        table('My paths', ['Verbs', 'Paths'], (status.nonResourceRules ?? []).map((rule) => [rule.verbs.join(', '), rule.nonResourceURLs.join(', ')])));
    } catch (error) {
      replace(this.own, failure(error));
    }
  }
}

function namesOf(known) {
  return [...new Set(known.flatMap((one) => ['', ...one.subresources].map((sub) => fullName({ ...one, name: sub ? `${one.name}/${sub}` : one.name }))))].sort();
}

// Parses `pods/log`, `deployments.apps`, or a path.
function parse(verb, what, namespace, name, known) {
  if (!verb || !what) throw new Error('Enter a verb, and a resource or a path.');
  if (what.startsWith('/')) return { verb, path: what };
  const [full, group] = what.includes('.') ? [what.slice(0, what.indexOf('.')), what.slice(what.indexOf('.') + 1)] : [what, ''];
  const [resource, subresource = ''] = full.split('/');
  const namespaced = known.find((one) => one.group === group && one.name === resource)?.namespaced ?? verb !== 'impersonate';
  return { verb, group, resource, subresource, namespaced, namespace: namespaced ? namespace : '', name };
}

function attributes({ verb, group, resource, subresource, namespace, name, path }) {
  return path ? { nonResourceAttributes: { verb, path } } : { resourceAttributes: { verb, group, resource, subresource, namespace, name } };
}

// All subjects by RBAC; the user of this session by all authorizers.
async function haveAll(asked, signal) {
  const mine = h('p', null, 'You: ', verdict(await review(attributes(asked), { signal })));
  try {
    const found = await whoCan(asked, signal);
    return [mine, table('Who can', ['Kind', 'Name', 'In namespace', 'By role', 'By binding'], found.map(({ kind, name, role, binding: { kind: bound, metadata } }) => [
      kind, h('strong', null, name), metadata.namespace ?? (asked.namespaced ? 'all' : '–'), rbacLink(role.kind, metadata.namespace, role.name), rbacLink(bound, metadata.namespace, metadata.name)])),
    h('p.quiet', null, 'According to the stored roles and bindings. Other authorizers are not included: enter a user to ask all of them.')];
  } catch (error) {
    if (error.code !== 403) throw error;
    return [mine, h('p.quiet', null, 'To see other users with this permission, you need the right to list roles and bindings.')];
  }
}

function rbacLink(kind, namespace, name) {
  const resource = { group: 'rbac.authorization.k8s.io', version: 'v1', name: `${kind.toLowerCase()}s` };
  return h('a', { href: objectLink(resource, kind.startsWith('Cluster') ? '' : namespace, name), title: kind }, name);
}

// The groups that authentication adds.
function impliedGroups(user) {
  const [, of] = /^system:serviceaccount:([^:]+):/.exec(user) ?? [];
  if (user === 'system:anonymous') return ['system:unauthenticated'];
  return ['system:authenticated', ...(of ? ['system:serviceaccounts', `system:serviceaccounts:${of}`] : [])];
}

async function hasUser(asked, user, groups, signal) {
  const list = groups.split(',').map((one) => one.trim()).filter(Boolean);
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { ...attributes(asked), user, groups: [...list, ...impliedGroups(user)] } };
  const { status } = await postJson(`${AUTHORIZATION}/subjectaccessreviews`, body, { signal });
  return h('p.large', null, `${user}: `, verdict(status));
}

function verdict({ allowed, denied, reason = '', evaluationError }) {
  const cause = reason.replace(/^RBAC: (allowed )?/, '');
  return [mark(allowed, allowed ? 'allowed' : denied ? 'denied' : 'not allowed'), h('span.quiet', null, ` ${[cause, evaluationError].filter(Boolean).join(' · ')}`)];
}
