// The JavaScript client, unmodified, as its users use it: CRUD, patches, watches, errors.
//
// Usage: smoke.mjs KUBECONFIG. Fails with an assertion; prints one line on success.

import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

const namespace = 'javascript';
const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const core = config.makeApiClient(k8s.CoreV1Api);

async function refused(code, call) {
  const error = await call().then(() => undefined, (e) => e);
  assert.equal(error?.code, code, String(error));
}

async function configMaps() {
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  const body = { metadata: { name: 'a', labels: { x: '1' } }, data: { k: 'v' } };
  const made = await core.createNamespacedConfigMap({ namespace, body });
  assert.ok(made.metadata.uid);
  const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'a', body: { ...made, data: { k: 'w' } } });
  assert.deepEqual(replaced.data, { k: 'w' });
  await refused(409, () => core.replaceNamespacedConfigMap({ namespace, name: 'a', body: { ...made, data: {} } }));
  await refused(404, () => core.readNamespacedConfigMap({ namespace, name: 'missing' }));
  const listed = await core.listNamespacedConfigMap({ namespace, labelSelector: 'x=1' });
  assert.deepEqual(listed.items.map((item) => item.metadata.name), ['a']);
  const patch = [{ op: 'add', path: '/data/more', value: '1' }];
  const patched = await core.patchNamespacedConfigMap({ namespace, name: 'a', body: patch });
  assert.deepEqual(patched.data, { k: 'w', more: '1' });
}

async function watching() {
  const { metadata } = await core.listNamespacedSecret({ namespace });
  const seen = [];
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  let stop;
  const ended = new Promise((resolve, reject) => {
    const onEvent = (type) => {
      seen.push(type);
      if (type === 'DELETED') resolve();
    };
    const query = { resourceVersion: metadata.resourceVersion, timeoutSeconds: 20 };
    stop = new k8s.Watch(config).watch(path, query, onEvent, (error) => (error ? reject(error) : resolve()));
  });
  const controller = await stop;
  await core.createNamespacedSecret({ namespace, body: { metadata: { name: 's' }, stringData: { p: 'q' } } });
  await core.deleteNamespacedSecret({ namespace, name: 's' });
  await ended;
  controller.abort();
  assert.deepEqual(seen, ['ADDED', 'DELETED']);
}

await configMaps();
await watching();
await core.deleteNamespace({ name: namespace });
console.log('the JavaScript client is at home');
