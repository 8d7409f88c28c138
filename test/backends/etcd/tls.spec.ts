import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { describeWanted, failureOf, TemporaryDirectory } from '../../support/index.js';
import { EtcdWorld } from './etcd-world.js';

describeWanted(['etcd'], 'TLS', () => {
  const directory = TemporaryDirectory.shared('etcd-tls');
  const file = (name: string): string => join(directory, name);
  let world: EtcdWorld;

  beforeAll(async () => {
    certificate('ca', ['-addext', 'basicConstraints=critical,CA:TRUE']);
    for (const name of ['server', 'client']) {
      certificate(name, ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-addext', 'subjectAltName=DNS:etcd.test']);
    }
    world = await EtcdWorld.start({ tls: { cert: file('server.crt'), key: file('server.key'), ca: file('ca.crt') } });
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const certificate = (name: string, more: readonly string[]): void => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file(`${name}.key`)];
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

  it('certificates are read again for each new connection, where a function reads them', async () => {
    const { endpoints, tls } = secure();
    let renewed = false;
    // The old one has expired, or is of an authority that the server no longer trusts.
    const service = world.service({
      endpoints,
      tls: () => (renewed ? tls : { ca: tls.ca, servername: tls.servername }),
      patienceMs: 200,
    });
    await expect(failureOf(service.acquire('k'))).resolves.toBeInstanceOf(LockBackendError);
    renewed = true;
    await (await service.acquire('k')).release();
  });

  it('certificates that cannot be read: an error and a health that say so', async () => {
    const { endpoints } = secure();
    const tls = () => ({ ca: readFileSync(file('missing.crt')) });
    const service = world.service({ endpoints, tls, patienceMs: 200 });
    expect(String(await failureOf(service.acquire('k')))).toContain('missing.crt');
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('missing.crt') });
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
