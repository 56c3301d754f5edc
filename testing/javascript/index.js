/** A Kubernetes API server for tests, with faults on request. index.d.ts documents the types. */

import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {readFile} from 'node:fs/promises';
import {Agent, request} from 'node:https';
import {createInterface} from 'node:readline';

const ARGUMENTS = ['run', '--ephemeral', '--test-faults', '--exit-with-stdin', '--ready-format', 'json', '-v', 'error'];
const FAULTS = '/portico/test-faults';
// Timeout for the start. Generous, because test machines can be busy.
const TIMEOUT_MILLISECONDS = 60_000;

/** Starts a server and waits until it is ready. */
export async function start({program = process.env.PORTICO_BIN ?? 'portico', args = []} = {}) {
  const child = spawn(program, [...ARGUMENTS, ...args], {stdio: ['pipe', 'pipe', 'inherit']});
  const ended = new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new Error(`cannot start ${program}: ${error.message}; install portico on the PATH or set PORTICO_BIN`)));
    child.once('exit', (code) => resolve(code));
  });
  // A rejection without a listener would end the process.
  ended.catch(() => {});
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MILLISECONDS);
  const lines = createInterface(child.stdout);
  try {
    const line = await Promise.race([once(lines, 'line').then(([line]) => line), ended]);
    if (typeof line !== 'string') {
      throw new Error(`${program} exited with ${line} before it was ready`);
    }
    const {url, kubeconfig, certs} = JSON.parse(line);
    const files = ['internal-ca.crt', 'admin.crt', 'admin.key'].map((name) => readFile(`${certs}/${name}`));
    const [ca, cert, key] = await Promise.all(files);
    return new Server({url, kubeconfig, certs}, child, ended, new Agent({ca, cert, key, keepAlive: false}));
  } finally {
    clearTimeout(timer);
  }
}

class Server {
  #child;
  #ended;
  #agent;

  constructor(ready, child, ended, agent) {
    Object.assign(this, ready);
    this.#child = child;
    this.#ended = ended;
    this.#agent = agent;
    // A server that was not stopped does not keep the test runner alive, and exits with it.
    child.unref();
    child.stdin.unref?.();
    child.stdout.unref?.();
  }

  async stop() {
    this.#child.ref();
    this.#child.stdin.end();
    await this.#ended;
  }

  async fault(fault, {times, ...match} = {}) {
    const {id} = await this.#ask('POST', FAULTS, {match, times, fault});
    const path = `${FAULTS}/${id}`;
    return {
      hits: async () => (await this.#ask('GET', path)).hits,
      remove: async () => (await this.#ask('DELETE', path)).hits,
    };
  }

  async clearFaults() {
    await this.#ask('DELETE', FAULTS);
  }

  #ask(method, path, body) {
    const headers = {'content-type': 'application/json', accept: 'application/json'};
    return new Promise((resolve, reject) => {
      const asked = request(this.url + path, {method, headers, agent: this.#agent}, async (response) => {
        try {
          const answer = JSON.parse(Buffer.concat(await response.toArray()).toString());
          if (response.statusCode >= 300) throw new Error(answer.message);
          resolve(answer);
        } catch (error) {
          reject(error);
        }
      });
      asked.once('error', reject);
      asked.end(body && JSON.stringify(body));
    });
  }
}
