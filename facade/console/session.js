// Who uses the console: a token that lives in this tab alone, or the browser's client certificate.

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

// Ends the session; who listens shows the page to log in.
export function forget() {
  clear();
  for (const listener of listeners) listener();
}

export function whenForgotten(listener) {
  listeners.add(listener);
}
