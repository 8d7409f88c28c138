import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { failureOf, throughout } from '../../conformance/contract.js';
import { eventually } from '../../support/eventually.js';
import { EtcdOperator } from '../../support/etcd-operator.js';
import { wantedOf } from '../describe-backend.js';
import { EtcdWorld } from './etcd-world.js';

const CREDENTIALS = { username: 'shop', password: 'canary-7e1f' };

wantedOf(['etcd']).forEach(() => {
  describe('users of etcd', () => {
    let world: EtcdWorld;
    let root: EtcdOperator;

    beforeAll(async () => {
      world = await EtcdWorld.start({ args: ['--auth-token-ttl', '1'] });
      const { operator } = world;
      await operator.ask('auth/user/add', { name: 'root', password: 'root' });
      await operator.ask('auth/user/grant', { user: 'root', role: 'root' });
      await operator.ask('auth/user/add', { name: CREDENTIALS.username, password: CREDENTIALS.password });
      await operator.ask('auth/role/add', { name: 'locks' });
      await operator.ask('auth/user/grant', { user: CREDENTIALS.username, role: 'locks' });
      const perm = { permType: 'READWRITE', key: base64('lock/'), range_end: base64('lock0') };
      await operator.ask('auth/role/grant', { name: 'locks', perm });
      await operator.ask('auth/enable', {});
      const { token } = await operator.ask<{ token: string }>('auth/authenticate', { name: 'root', password: 'root' });
      root = new EtcdOperator(world.server.urls, token);
    });
    afterEach(() => world.closeClients());
    afterAll(() => world[Symbol.asyncDispose]());

    it('need no more than read and write on the prefix, to acquire, wait, hold and release', async () => {
      const [ours, theirs] = [world.service({ credentials: CREDENTIALS }), world.service({ credentials: CREDENTIALS })];
      const lock = await ours.acquire('k');
      const waiting = theirs.acquire('k', { waitMs: 10_000 });
      await throughout(2_500, () => expect(lock.isHeld).toBe(true));
      await lock.release();
      await (await waiting).release();
    });

    it('E8: auth token expired, or unknown: a new one is asked for, and nobody notices', async () => {
      const authentications = async (): Promise<number> => (await world.server.requests())['Authenticate'] ?? 0;
      const service = world.service({ credentials: CREDENTIALS, ttlSeconds: 60 });
      await (await service.acquire('k')).release();
      const before = await authentications();
      // Longer than a token lives that is not used.
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      await (await service.acquire('k', { waitMs: 0 })).release();
      expect(await authentications()).toBe(before + 1);
      await world.server.restart({ empty: false });
      await (await eventually(() => service.acquire('k', { waitMs: 0 }))).release();
    });

    it('E8: rights changed meanwhile: nobody notices', async () => {
      const service = world.service({ credentials: CREDENTIALS, ttlSeconds: 60 });
      await (await service.acquire('k')).release();
      const { token } = await world.operator.ask<{ token: string }>('auth/authenticate', {
        name: 'root',
        password: 'root',
      });
      root = new EtcdOperator(world.server.urls, token);
      await root.ask('auth/user/add', { name: 'another', password: 'one' });
      await (await service.acquire('k', { waitMs: 0 })).release();
    });

    it('outside of their prefix are refused at once', async () => {
      const service = world.service({ credentials: CREDENTIALS, prefix: 'elsewhere' });
      const since = performance.now();
      const error = await failureOf(service.acquire('k'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toContain('permission denied');
      expect(performance.now() - since).toBeLessThan(2_000);
    });

    it.each([
      ['with a wrong password', { username: 'shop', password: 'canary-wrong' }],
      ['unknown to it', { username: 'canary-nobody', password: 'canary-7e1f' }],
      ['who do not say who they are', undefined],
    ])('%s are refused at once, and no error repeats what they said', async (_, credentials) => {
      const said: unknown[] = [];
      const note = (event: unknown) => void said.push(event);
      const observers = [{ backendFailed: note, healthChanged: note }];
      const service = world.service(credentials ? { credentials } : {}, { observers });
      const error = await failureOf(service.acquire('k'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(inspect([error, service.health, said], { depth: 10 })).not.toContain('canary');
    });
  });

  describe('TLS', () => {
    const directory = mkdtempSync(join(tmpdir(), 'etcd-tls-'));
    const file = (name: string): string => join(directory, name);
    let world: EtcdWorld;

    beforeAll(async () => {
      certificate('ca', ['-addext', 'basicConstraints=critical,CA:TRUE']);
      for (const name of ['server', 'client']) {
        certificate(name, ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-addext', 'subjectAltName=DNS:etcd.test']);
      }
      world = await EtcdWorld.start({ tls: { cert: file('server.crt'), key: file('server.key'), ca: file('ca.crt') } });
    });
    afterEach(() => world.closeClients());
    afterAll(async () => {
      await world[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    });

    const certificate = (name: string, more: readonly string[]): void => {
      const key = [
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-keyout',
        file(`${name}.key`),
      ];
      const args = ['req', '-x509', '-days', '2', '-subj', `/CN=${name}`, ...key, '-out', file(`${name}.crt`), ...more];
      execFileSync('openssl', args, { stdio: 'ignore' });
    };
    const secure = () => ({
      endpoints: world.server.members[0].tlsUrl ?? '',
      tls: {
        ca: readFileSync(file('ca.crt')),
        cert: readFileSync(file('client.crt')),
        key: readFileSync(file('client.key')),
        servername: 'etcd.test',
      },
    });

    it('with certificates on both sides', async () => {
      const [ours, theirs] = [world.service(secure()), world.service()];
      const lock = await ours.acquire('k');
      expect(await theirs.tryAcquire('k')).toBeNull();
      await lock.release();
    });

    it.each([
      ['that nobody vouches for', { ca: undefined }],
      ['of another host', { servername: 'elsewhere.test' }],
    ])('a certificate %s is an error, not a retry without an end', async (_, wrong) => {
      const { endpoints, tls } = secure();
      const { ca, ...rest } = { ...tls, ...wrong };
      const service = world.service({ endpoints, tls: ca ? { ca, ...rest } : rest, patienceMs: 200 });
      const error = await failureOf(service.acquire('k'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(String(error)).toMatch(/certificate|altnames|signed/iu);
    });

    it('without a certificate of the client where the server wants one', async () => {
      const { endpoints, tls } = secure();
      const { ca, servername } = tls;
      const service = world.service({ endpoints, tls: { ca, servername }, patienceMs: 200 });
      await expect(failureOf(service.acquire('k'))).resolves.toBeInstanceOf(LockBackendError);
    });
  });
});

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
