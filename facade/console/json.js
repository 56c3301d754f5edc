// JSON as the server means it: integers that a number of JavaScript cannot hold stay what they are, as BigInt.

// Few texts have any, and those alone are read the slow way.
const LONG = /\d{16}/;

function exact(key, value, context) {
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value);
  return isRounded && /^-?\d+$/.test(context?.source ?? '') ? BigInt(context.source) : value;
}

export function parseJson(text) {
  return LONG.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

export function printJson(value) {
  return JSON.stringify(value, (key, item) => (typeof item === 'bigint' ? JSON.rawJSON(String(item)) : item));
}
