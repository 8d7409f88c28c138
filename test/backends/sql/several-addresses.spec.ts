import { once } from 'node:events';
import { LockService } from 'nestjs-distributed-lock/core';
import { mysql, type MysqlOptions } from 'nestjs-distributed-lock/mysql';
import { postgres, type PostgresOptions } from 'nestjs-distributed-lock/postgres';
import { Addresses } from '../../../lib/backends/sql/connections/addresses.js';
import { Sockets } from '../../../lib/backends/sql/connections/sockets.js';
import { closeAfterEach, describeWanted, FaultProxy, freePort, timeLimitOf } from '../../support/index.js';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { systemClock } from '../../../lib/core/time/timers.js';
import { openConnection } from './databases.js';

const STRATEGIES = ['lease', 'row', 'session'] as const;
/** Milliseconds that a server takes to greet, such as one behind a proxy that starts it. */
const SLOW_MS = 1_200;

const keep = closeAfterEach();

const atPort = (url: string, port: number): string => Object.assign(new URL(url), { port: String(port) }).href;

describeWanted(['mariadb'], 'a list of urls, %s', () => {
  let reader: MysqlServer;
  let refusing: MysqlServer;
  let writer: MysqlServer;
  const open = (options: MysqlOptions): LockService => keep(new LockService(mysql({ synchronize: true, ...options })));
  const ask = async (url: string, sql: string): Promise<void> => {
    const connection = await openConnection('mariadb', url);
    await connection.ask(sql);
    await connection.end();
  };

  beforeAll(async () => {
    writer = await MysqlServer.start('mariadb');
    reader = await MysqlServer.start('mariadb', ['--innodb-read-only']);
    refusing = await MysqlServer.start('mariadb', ['--init-connect=set session transaction read only']);
  });
  afterAll(() => Promise.all([reader.stop(), refusing.stop(), writer.stop()]));

  it.each(STRATEGIES)('a server whose storage engine is read-only is passed over: %s', async (strategy) => {
    await (await open({ url: [reader.url, writer.url], strategy }).acquire('k')).release();
  });

  it.each(STRATEGIES)('the first request has its lock from the second server: %s', async (strategy) => {
    for (const first of [reader.url, atPort(writer.url, await freePort())])
      await expectLockAtOnce(open({ url: [first, writer.url], strategy }));
  });

  it.each(STRATEGIES)('a server that refuses writes only when they come is passed over next: %s', async (strategy) => {
    const urls = [refusing.url, writer.url];
    for (const url of urls) {
      await ask(url, `create or replace user app@'%'`);
      await ask(url, `grant all on test.* to app@'%'`);
      await (await open({ url }).acquire('the table is there')).release();
    }
    const url = urls.map((address) => Object.assign(new URL(address), { username: 'app' }).href);
    const service = open({ url, strategy });
    await (await service.acquire('k', { waitMs: 10_000 })).release();
  });

  it.each([{ connectTimeoutMs: 20_000 }, { connection: { connectTimeout: 10_000 } }])(
    'an address has its share of the time, or what the driver is told: %j',
    async (options) => {
      await using way = await openSlowWay(writer);
      await (await open({ url: await way.urls(writer.url), ...options }).acquire('slow', { waitMs: 0 })).release();
    },
  );
});

describeWanted(['postgres'], 'a list of urls, %s', () => {
  const server = PostgresServer.shared();

  it.each(STRATEGIES)('the first request has its lock from the second server: %s', async (strategy) => {
    const url = [atPort(server.url, await freePort()), server.url];
    await expectLockAtOnce(keep(new LockService(postgres({ synchronize: true, url, strategy }))));
  });

  it('a pooler that lets in and answers no statement is passed over by the next attempt', async () => {
    const proxy = keep(await FaultProxy.start(server));
    const forgetEachAsker = (): void => void proxy.forgetAfter('transaction_read_only').then(forgetEachAsker);
    forgetEachAsker();
    const url = [atPort(server.url, proxy.port), server.url];
    const service = keep(new LockService(postgres({ synchronize: true, url })));
    await (await service.acquire('k', { waitMs: timeLimitOf(10_000) })).release();
  });

  it.each([{ connectTimeoutMs: 20_000 }, { connection: { connectionTimeoutMillis: 10_000 } }])(
    'an address has its share of the time, or what the driver is told: %j',
    async (options: PostgresOptions) => {
      await using way = await openSlowWay(server);
      const url = await way.urls(server.url);
      const service = keep(new LockService(postgres({ synchronize: true, url, ...options })));
      await (await service.acquire('slow', { waitMs: 0 })).release();
    },
  );
});

it('each opening tries each address, whatever another opening has found meanwhile', async () => {
  const addresses = new Addresses(['silent', 'good']);
  let endSilence: () => void = () => undefined;
  const silence = new Promise<void>((resolve) => (endSilence = resolve));
  const open = async (address: string): Promise<string> => {
    if (address === 'good') return address;
    await silence;
    throw new Error('no answer');
  };
  const patient = addresses.openFirstWorking(open);
  await addresses.openFirstWorking(async (address) => {
    if (address !== 'good') throw new Error('refused');
    return address;
  });
  endSilence();
  await expect(patient).resolves.toBe('good');
});

it('the end of a connection is the close of its newest socket, and not of one that failed before', async () => {
  const sockets = new Sockets();
  const [failed, newest] = [sockets.create(), sockets.create()];
  let ends = 0;
  sockets.setEndListener(() => (ends += 1));
  await once(failed.destroy(), 'close');
  expect(ends).toBe(0);
  await once(newest.destroy(), 'close');
  expect(ends).toBe(1);
});

it('a socket that a driver creates for the next address of an ended connection is destroyed', () => {
  const sockets = new Sockets();
  sockets.destroy();
  expect(sockets.create().destroyed).toBe(true);
});

async function expectLockAtOnce(service: LockService): Promise<void> {
  const statuses: string[] = [];
  service.backend.health.onChange(({ status }) => void statuses.push(status));
  await (await service.acquire('k', { waitMs: 0 })).release();
  expect(statuses).not.toContain('down');
}

/** Returns a way to the server that stays silent at first, and urls: that way, and a port where nobody listens. */
async function openSlowWay(server: { readonly port: number }) {
  const proxy = await FaultProxy.start(server);
  proxy.pause();
  const timer = systemClock.schedule(SLOW_MS, () => proxy.resume());
  return {
    urls: async (url: string) => [atPort(url, proxy.port), atPort(url, await freePort())],
    async [Symbol.asyncDispose]() {
      timer.cancel();
      await proxy.close();
    },
  };
}
