// Starts the console: the session, the header, the pages and the keys.

import { button, h, replace, failure } from './dom.js';
import { whoAmI, showLogin, userName } from './login.js';
import { clear, forget, session, whenForgotten, applyTheme, nextTheme, theme } from './session.js';
import { forgetResources } from './discovery.js';
import { globalKeys, listen, pageKeys, showHelp } from './keys.js';
import { adopt, changes, chosen, label } from './namespace.js';
import { forgetRights, may, mayPath } from './rights.js';
import { end, forgetLeft, go, route, setQuery, start, where } from './router.js';
import { openNamespaces, searchKinds, searchObjects } from './palettes.js';
import { status } from './status.js';
import { apis, api } from './apis.js';
import { definitions, definition } from './definitions.js';
import { kinds } from './kinds.js';
import { objects } from './objects.js';
import { object } from './object.js';
import { past } from './past.js';
import { schema } from './schema.js';
import { access } from './access.js';
import { audit } from './audit.js';

const main = document.getElementById('main');
const nav = document.getElementById('nav');

const APISERVICES = { group: 'apiregistration.k8s.io', name: 'apiservices' };
const DEFINITIONS = { group: 'apiextensions.k8s.io', name: 'customresourcedefinitions' };
// A page: its path, its name in the navigation, its key after `g`, and the permission without which it is empty.
const PAGES = [
  ['objects', 'Objects', 'o'], ['apis', 'APIs', 'r', () => may('list', APISERVICES)], ['definitions', 'Definitions', 'd', () => may('list', DEFINITIONS)],
  ['access', 'Access', 'a'], ['audit', 'Audit', 't', () => mayPath('get', '/console/data/audit')], ['status', 'Status', 's', () => mayPath('get', '/console/data/last-hour')],
];
// The entry of the navigation that other pages belong to.
const BELONGS = { api: 'apis', definition: 'definitions', object: 'objects', past: 'objects', schema: 'definitions' };
// Pages whose address names the namespace they show.
const NAMESPACED = ['objects', 'past', 'access'];
let allowed = [];

function page(pattern, show) {
  route(pattern, async (parameters, query, signal) => {
    pageKeys({});
    replace(main, h('p.quiet', null, 'Loading …'));
    useNamespace(pattern, query);
    showNavigation();
    window.scrollTo(0, 0);
    try {
      await show({ main, parameters, query, signal, go });
    } catch (error) {
      if (!signal.aborted) replace(main, failure(error));
    }
  });
}

// An address that names a namespace chooses it; other addresses get the chosen one.
function useNamespace(pattern, query) {
  if (!NAMESPACED.includes(pattern.split('/')[0])) return;
  if (query.has('namespace')) adopt(query.get('namespace'));
  else setQuery({ namespace: chosen() });
}

function namespaceChanged() {
  forgetLeft();
  const [first, ...parts] = where().path.split('/');
  // The object of another namespace is left for the list of its kind.
  if (first === 'object' && parts[3] !== '-') return go(`#/objects/${parts.slice(0, 3).join('/')}`);
  if (NAMESPACED.includes(first)) setQuery({ namespace: chosen() });
  return start();
}

function showNavigation() {
  const first = where().path.split('/')[0];
  const current = BELONGS[first] ?? first;
  replace(nav, session.user ? allowed.map(([path, name, key]) =>
    h('a', { href: `#/${path}`, 'aria-current': path === current ? 'page' : undefined, title: `g ${key}` }, name)) : []);
  nav.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  document.title = `${PAGES.find(([path]) => path === current)?.[1] ?? 'Console'} · Portico`;
}

function showTools() {
  const look = button('', () => { nextTheme(); showTheme(); }, { id: 'theme' }, 'button.plain');
  const showTheme = () => {
    look.textContent = { system: '◐', light: '○', dark: '●' }[theme()];
    look.title = look.ariaLabel = `Theme: ${theme()}`;
  };
  showTheme();
  replace(document.getElementById('tools'), session.user && [
    button(label(), openNamespaces, { id: 'namespace', 'aria-haspopup': 'dialog', title: 'Choose the namespace (n)' }),
    button(['Search ', h('kbd', null, '/')], () => searchObjects(), { id: 'search', 'aria-haspopup': 'dialog', title: 'Objects by name; : goes to a kind' })]);
  replace(document.getElementById('who'), session.user && h('span.name', { title: [session.user.username, ...session.user.groups ?? []].join('\n') }, userName()),
    look, button('?', showHelp, { 'aria-label': 'Keys', title: 'Keys' }, 'button.plain'), session.token() && button('Log out', forget, { id: 'log-out' }, 'button.plain'));
}

function login() {
  end();
  pageKeys({});
  showNavigation();
  showTools();
  showLogin(main, begin);
}

async function begin() {
  forgetResources();
  forgetRights();
  try {
    if (!session.user) await whoAmI();
  } catch (error) {
    if (error.code === 401) clear();
    else if (error.code !== 403) return replace(main, failure(error), button('Try again', begin, null, 'button.primary'));
  }
  if (!session.user) return login();
  const rights = await Promise.all(PAGES.map(([, , , isAllowed]) => isAllowed?.() ?? true));
  allowed = PAGES.filter((_, at) => rights[at]);
  showTools();
  return start();
}

page('status', status);
page('apis', apis);
page('api/:name', api);
page('definitions', definitions);
page('definition/:name', definition);
page('schema/:group/:version/:kind', schema);
page('objects', kinds);
page('objects/:group/:version/:resource', objects);
page('object/:group/:version/:resource/:namespace/:name', object);
page('past/:group/:version/:resource', past);
page('access', access);
page('audit', audit);

const loggedIn = (run) => () => session.user && run();
globalKeys({
  ...Object.fromEntries(PAGES.map(([path, name, key]) => [`g ${key}`, [`Go to ${name}`, loggedIn(() => go(`#/${path}`))]])),
  '/': ['Search objects by name', loggedIn(() => searchObjects())],
  ':': ['Go to a kind', loggedIn(searchKinds)],
  n: ['Choose the namespace', loggedIn(openNamespaces)],
  '?': ['Show these keys', showHelp],
  T: ['Light, dark, or as the system', () => document.getElementById('theme')?.click()],
});

applyTheme();
listen();
whenForgotten(login);
changes.addEventListener('change', namespaceChanged);
window.addEventListener('hashchange', () => session.user && start());
showNavigation();
begin();
