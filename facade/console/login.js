// The login page, and the user that the server recognizes.

import { h, replace, failure } from './dom.js';
import { postJson } from './http.js';
import { session, remember, clear } from './session.js';

const UNKNOWN = 'The server does not know this token. It has expired, or belongs to another server: create a new one.';

// The user's name; `default/boss` for a service account.
export function userName() {
  return session.user.username.replace(/^system:serviceaccount:([^:]+):/, '$1/');
}

// The user of this session; `undefined` for anonymous callers and unknown tokens.
export async function whoAmI() {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const { status } = await postJson('/apis/authentication.k8s.io/v1/selfsubjectreviews', review);
  const user = status?.userInfo;
  session.user = user?.username && user.username !== 'system:anonymous' ? user : undefined;
  return session.user;
}

export function showLogin(main, done) {
  const field = h('input', { id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, 'aria-describedby': 'token-help' });
  const refused = h('div', { 'aria-live': 'polite' });
  const button = h('button.primary', { type: 'submit' }, 'Log in');
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    replace(refused);
    remember(field.value.trim());
    try {
      if (await whoAmI()) return done();
      throw new Error(UNKNOWN);
    } catch (error) {
      clear();
      replace(refused, failure(error.code === 401 ? new Error(UNKNOWN) : error));
    }
    button.disabled = false;
    field.focus();
  };
  replace(main, h('form.login.panel', { onsubmit: submit },
    h('h1', null, 'Log in'),
    h('label', { for: 'token' }, 'Bearer token'), field,
    h('p.quiet', { id: 'token-help' }, 'For example of a service account: kubectl create token NAME. The token stays in this tab until you close it. With a client certificate you need no token.'),
    refused, button));
  field.focus();
}
