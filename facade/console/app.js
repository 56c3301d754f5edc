// Starts the console: the session, the pages and the keys.

import { h, replace, failure } from './dom.js';
import { whoAmI, showLogin } from './login.js';
import { clear, forget, session, whenForgotten } from './session.js';
import { applyTheme, nextTheme, theme } from './theme.js';
import { forgetResources } from './discovery.js';
import { globalKeys, listen, pageKeys, showHelp } from './keys.js';
import { end, go, route, start, where } from './router.js';
import { overview } from './overview.js';
import { apis, api } from './apis.js';
import { definitions, definition } from './definitions.js';
import { kinds, objects } from './objects.js';
import { object } from './object.js';
import { past } from './past.js';
import { schema } from './schema.js';
import { access } from './access.js';
import { audit } from './audit.js';

const main = document.getElementById('main');
const nav = document.getElementById('nav');

// A page: its path, its name in the navigation, its key behind `g`.
const PAGES = [
  ['overview', 'Overview', 'h'], ['apis', 'APIs', 'r'], ['definitions', 'Definitions', 'd'],
  ['objects', 'Objects', 'o'], ['access', 'Access', 'a'], ['audit', 'Audit', 't'],
];
// Which name in the navigation a page without one belongs to.
const BELONGS = { api: 'apis', definition: 'definitions', object: 'objects', past: 'objects', schema: 'definitions' };

function page(pattern, show) {
  route(pattern, async (parameters, query, signal) => {
    pageKeys({});
    replace(main, h('p.quiet', null, 'Loading …'));
    showNavigation();
    window.scrollTo(0, 0);
    try {
      await show({ main, parameters, query, signal, go });
    } catch (error) {
      if (!signal.aborted) replace(main, failure(error));
    }
  });
}

function showNavigation() {
  const first = where().path.split('/')[0];
  const current = BELONGS[first] ?? first;
  replace(nav, session.user ? PAGES.map(([path, name, key]) =>
    h('a', { href: `#/${path}`, 'aria-current': path === current ? 'page' : undefined, title: `g ${key}` }, name)) : []);
  document.title = `${PAGES.find(([path]) => path === current)?.[1] ?? 'Console'} · Portico`;
}

function showUser() {
  const look = h('button.plain', { type: 'button', id: 'theme', onclick: () => { look.textContent = label(nextTheme()); } }, label(theme()));
  const out = session.token() && h('button.plain', { type: 'button', id: 'log-out', onclick: forget }, 'Log out');
  replace(document.getElementById('who'), session.user && h('span.name', { title: (session.user.groups ?? []).join('\n') }, session.user.username),
    look, h('button.plain', { type: 'button', 'aria-label': 'Keys', onclick: showHelp }, '?'), out);
}

function label(chosen) {
  return { system: '◐ System', light: '○ Light', dark: '● Dark' }[chosen];
}

function login() {
  end();
  pageKeys({});
  showNavigation();
  showUser();
  showLogin(main, begin);
}

async function begin() {
  forgetResources();
  try {
    if (!session.user) await whoAmI();
  } catch (error) {
    if (error.code === 401) clear();
    else if (error.code !== 403) {
      return replace(main, failure(error), h('button.primary', { type: 'button', onclick: begin }, 'Try again'));
    }
  }
  if (!session.user) return login();
  showUser();
  start();
}

page('overview', overview);
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

globalKeys({
  ...Object.fromEntries(PAGES.map(([path, name, key]) => [`g ${key}`, [`Go to ${name}`, () => session.user && go(`#/${path}`)]])),
  '?': ['Show these keys', showHelp],
  T: ['Light, dark, or as the system', () => document.getElementById('theme')?.click()],
});

applyTheme();
listen();
whenForgotten(login);
window.addEventListener('hashchange', () => session.user && start());
showNavigation();
begin();
