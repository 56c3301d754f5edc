// The user of the console: by a token, which is kept for this tab only, or by the browser's client certificate.

const KEY = 'portico-console-token';
const listeners = new Set();

export const session = {
  user: undefined,
  token: () => sessionStorage.getItem(KEY) ?? '',
};

export function remember(token) {
  sessionStorage.setItem(KEY, token);
}

// Removes the token.
export function clear() {
  sessionStorage.removeItem(KEY);
  session.user = undefined;
}

// Ends the session and notifies the listeners.
export function forget() {
  clear();
  for (const listener of listeners) listener();
}

export function whenForgotten(listener) {
  listeners.add(listener);
}
