import assert from 'node:assert/strict';
import {existsSync} from 'node:fs';
import {dirname} from 'node:path';
import {after, afterEach, before, test} from 'node:test';

import {CoreV1Api, KubeConfig, makeInformer} from '@kubernetes/client-node';

import {start} from '../index.js';

const namespace = 'default';
let server, config, core;

before(async () => {
  server = await start();
  config = new KubeConfig();
  config.loadFromFile(server.kubeconfig);
  core = config.makeApiClient(CoreV1Api);
});
after(() => server.stop());
afterEach(() => server.clearFaults());

const create = (name) => core.createNamespacedConfigMap({namespace, body: {metadata: {name}}});
const get = (name) => core.readNamespacedConfigMap({namespace, name});

test('requests are refused as often as is asked for, and those of other resources are not', async () => {
  for (const code of [409, 410, 429, 500, 503]) {
    const fault = await server.fault({status: {code}}, {resource: 'configmaps', verbs: ['create'], times: 1});
    await core.listNamespacedSecret({namespace});
    await assert.rejects(create(`refused-${code}`), (error) => error.code === code);
    await create(`refused-${code}`);
    assert.equal(await fault.remove(), 1);
  }
});

test('requests are late, and answers are lost, and what was asked for is done', async () => {
  const late = await server.fault({latency: {milliseconds: 200}}, {resource: 'configmaps', times: 1});
  const began = performance.now();
  await create('late');
  assert.ok(performance.now() - began >= 200);
  assert.equal(await late.hits(), 1);
  await server.fault({dropAnswer: {}}, {verbs: ['create']});
  await assert.rejects(create('lost'), (error) => error.code !== 201 && !(error.code >= 400));
  assert.equal((await get('lost')).metadata.name, 'lost');
});

test('reads are stale', async () => {
  await server.fault({staleReads: {}}, {resource: 'configmaps'});
  await create('new');
  await assert.rejects(get('new'), (error) => error.code === 404);
  await server.clearFaults();
  await get('new');
});

test('an informer goes on after its watches ended', {timeout: 60_000}, async () => {
  const list = () => core.listNamespacedConfigMap({namespace});
  const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list);
  const added = new Map();
  const comes = (name) => new Promise((resolve) => added.set(name, resolve));
  informer.on('add', (object) => added.get(object.metadata.name)?.());
  // As its documentation has it: it is for its user to start it again.
  let stopped = false;
  informer.on('error', () => stopped || setTimeout(() => stopped || informer.start(), 5));
  await informer.start();
  for (const [name, fault] of Object.entries({cut: {cutWatch: {}}, clean: {cutWatch: {clean: true}}, expired: {expireWatch: {}}})) {
    const set = await server.fault(fault, {resource: 'configmaps', times: 1});
    for (const each of [name, `after-${name}`]) {
      const seen = comes(each);
      await create(each);
      await seen;
    }
    assert.equal(await set.remove(), 1);
  }
  stopped = true;
  await informer.stop();
});

test('a fault that makes no sense is refused in words', async () => {
  await assert.rejects(server.fault({cutWatch: {}}, {verbs: ['get']}), /applies only to watch/);
  await assert.rejects(server.fault({slow: {}}), /unknown variant `slow`/);
});

test('a server leaves nothing, and one that does not start says so', async () => {
  const other = await start();
  assert.ok(existsSync(other.kubeconfig));
  await other.stop();
  assert.ok(!existsSync(dirname(other.kubeconfig)));
  await assert.rejects(start({program: 'no-such-program'}), /PORTICO_BIN/);
  await assert.rejects(start({args: ['--no-such-flag']}), /exited with 2/);
});
