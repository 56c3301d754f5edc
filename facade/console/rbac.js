// Who may do something, by the roles and bindings that are stored.

import { getJson, query } from './http.js';

const ROOT = '/apis/rbac.authorization.k8s.io/v1';
const PAGE = 500;

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

// Whether a rule allows this; `subresource` patterns are `pods/log` or `*/log`.
export function allows(rule, { verb, group, resource, subresource, name, path }) {
  if (!has(rule.verbs, verb)) return false;
  if (path) return isPath(rule.nonResourceURLs, path);
  const full = subresource ? `${resource}/${subresource}` : resource;
  const isNamed = !rule.resourceNames?.length || (name && rule.resourceNames.includes(name));
  return has(rule.apiGroups, group) && isNamed && (has(rule.resources, full) || Boolean(subresource && rule.resources?.includes(`*/${subresource}`)));
}

// The subjects that may, each with the binding and the role that let it.
export async function whoCan(asked, signal) {
  const [clusterRoles, roles, clusterBindings, bindings] = await Promise.all(
    ['clusterroles', 'roles', 'clusterrolebindings', 'rolebindings'].map((name) => all(`${ROOT}/${name}`, signal)));
  const rules = new Map([...clusterRoles, ...roles].map((role) => [`${role.metadata.namespace ?? ''}/${role.metadata.name}`, role.rules ?? []]));
  const rulesOf = (binding) => {
    const { kind, name } = binding.roleRef;
    return rules.get(`${kind === 'Role' ? binding.metadata.namespace : ''}/${name}`) ?? [];
  };
  const counts = (binding) => !binding.metadata.namespace || (!asked.path && binding.metadata.namespace === asked.namespace);
  return [...clusterBindings, ...bindings].filter(counts).filter((binding) => rulesOf(binding).some((rule) => allows(rule, asked)))
    .flatMap((binding) => (binding.subjects ?? []).map((subject) => ({
      kind: subject.kind, name: subject.kind === 'ServiceAccount' ? `${subject.namespace ?? binding.metadata.namespace}/${subject.name}` : subject.name,
      role: `${binding.roleRef.kind} ${binding.roleRef.name}`, binding: [binding.metadata.namespace, binding.metadata.name].filter(Boolean).join('/'),
    })));
}
