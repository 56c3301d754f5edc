// Permissions: of the user, by access reviews, so that pages hide actions that would be refused; of all subjects, by RBAC.

import { resources } from './discovery.js';
import { postJson, getJson, query } from './http.js';

export const AUTHORIZATION = '/apis/authorization.k8s.io/v1';
// An answer is reused for a minute: a page asks the same questions again when it is reopened.
const REUSED = 60000;
const answers = new Map();

export async function review(spec, options) {
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec };
  return (await postJson(`${AUTHORIZATION}/selfsubjectaccessreviews`, body, options)).status;
}

// A review that fails hides nothing, and is not reused: the action itself reports the error.
function ask(spec) {
  const key = JSON.stringify(spec);
  const known = answers.get(key);
  if (known && Date.now() - known.asked < REUSED) return known.answer;
  const answer = review(spec).then(({ allowed }) => allowed === true, () => { answers.delete(key); return true; });
  answers.set(key, { asked: Date.now(), answer });
  return answer;
}

export function may(verb, { group, version, name }, namespace = '', subresource = '', object = '') {
  return ask({ resourceAttributes: { verb, group, version, resource: name, subresource, namespace, name: object } });
}

export function mayPath(verb, path) {
  return ask({ nonResourceAttributes: { verb, path } });
}

// The kinds that the user may list, by one review of the rules in the namespace. Without a namespace some of them may still be refused.
export async function listable(namespace) {
  const kinds = (await resources()).filter((one) => one.preferred && one.verbs.includes('list'));
  const { resourceRules = [], incomplete } = await rules(namespace || 'default').catch(() => ({ incomplete: true }));
  return incomplete ? kinds : kinds.filter(({ group, name }) => resourceRules.some((rule) => allows(rule, { verb: 'list', group, resource: name })));
}

export async function rules(namespace, options) {
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
  return (await postJson(`${AUTHORIZATION}/selfsubjectrulesreviews`, body, options)).status;
}

export function forgetRights() {
  answers.clear();
}

const ROOT = '/apis/rbac.authorization.k8s.io/v1';
const PAGE = 500;

// All pages of a list.
async function all(path, signal) {
  const items = [];
  let continued = '';
  do {
    const list = await getJson(path + query({ limit: PAGE, continue: continued }), { signal });
    items.push(...list.items);
    continued = list.metadata?.continue;
  } while (continued);
  return items;
}

function has(list, wanted) {
  return (list ?? []).some((one) => one === '*' || one === wanted);
}

function isPath(patterns, path) {
  return (patterns ?? []).some((one) => one === '*' || one === path || (one.endsWith('*') && path.startsWith(one.slice(0, -1))));
}

// True if a rule allows the request; patterns of subresources are `pods/log` or `*/log`.
function allows(rule, { verb, group, resource, subresource, name, path }) {
  if (!has(rule.verbs, verb)) return false;
  if (path) return isPath(rule.nonResourceURLs, path);
  const full = subresource ? `${resource}/${subresource}` : resource;
  const isNamed = !rule.resourceNames?.length || (name && rule.resourceNames.includes(name));
  return has(rule.apiGroups, group) && isNamed && (has(rule.resources, full) || Boolean(subresource && rule.resources?.includes(`*/${subresource}`)));
}

// The subjects with the permission, each with its binding and role: those of the system last.
export async function whoCan(asked, signal) {
  const [clusterRoles, roles, clusterBindings, bindings] = await Promise.all(
    ['clusterroles', 'roles', 'clusterrolebindings', 'rolebindings'].map((name) => all(`${ROOT}/${name}`, signal)));
  const rules = new Map([...clusterRoles, ...roles].map((role) => [`${role.metadata.namespace ?? ''}/${role.metadata.name}`, role.rules ?? []]));
  const rulesOf = (binding) => {
    const { kind, name } = binding.roleRef;
    return rules.get(`${kind === 'Role' ? binding.metadata.namespace : ''}/${name}`) ?? [];
  };
  const counts = ({ metadata: { namespace } }) => !namespace || (asked.namespaced && (!asked.namespace || namespace === asked.namespace));
  const isOwn = ({ name }) => /^(kube-)?system[:/]/.test(name);
  return [...clusterBindings.map((one) => ({ kind: 'ClusterRoleBinding', ...one })), ...bindings.map((one) => ({ kind: 'RoleBinding', ...one }))]
    .filter((binding) => counts(binding) && rulesOf(binding).some((rule) => allows(rule, asked)))
    .flatMap((binding) => (binding.subjects ?? []).map((subject) => ({
      kind: subject.kind, name: subject.kind === 'ServiceAccount' ? `${subject.namespace ?? binding.metadata.namespace}/${subject.name}` : subject.name, role: binding.roleRef, binding,
    }))).sort((a, b) => isOwn(a) - isOwn(b));
}
