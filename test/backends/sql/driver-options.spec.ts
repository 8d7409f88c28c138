import Database from 'libsql';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { mysql, type MysqlOptions, rowClient as mysqlRowClient } from 'nestjs-distributed-lock/mysql';
import { postgres, type PostgresOptions, rowClient } from 'nestjs-distributed-lock/postgres';
import { sqlite } from 'nestjs-distributed-lock/sqlite';
import { postgres as recipe } from '../../../servers/postgres.js';
import { closeAfterEach, describeWanted, failureOf, freePort } from '../../support/index.js';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { openConnection } from './databases.js';

const keep = closeAfterEach();

/** Returns the URL at another port, where nobody listens. */
const elsewhere = async (url: string): Promise<string> =>
  Object.assign(new URL(url), { port: String(await freePort()) }).href;

describeWanted(['postgres'], 'options of the driver, %s', () => {
  const server = PostgresServer.shared();
  const ask = async (sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const connection = await openConnection('postgres', server.url);
    const rows = await connection.ask(sql);
    await connection.end();
    return rows;
  };
  const open = (options: PostgresOptions): LockService =>
    keep(new LockService(postgres({ synchronize: true, ...options })));

  it('connection says all without a url', async () => {
    const { hostname: host, port, username: user, pathname } = new URL(server.url);
    const connection = { host, port: Number(port), user, database: pathname.slice(1) };
    await (await open({ connection }).acquire('k')).release();
  });

  it('connection says the user and the password that the url does not', async () => {
    await ask(`create role rds superuser login password 'a token'`);
    await writeFile(
      join(server.directory, 'hba'),
      'host all rds all scram-sha-256\nhost all all all trust\nlocal all all trust\n',
    );
    await ask(`alter system set hba_file = '${join(server.directory, 'hba')}'`);
    await server.restart({ empty: false });
    const url = Object.assign(new URL(server.url), { username: '' }).href;
    let asked = 0;
    const password = async (): Promise<string> => {
      asked += 1;
      return 'a token';
    };
    for (const strategy of ['lease', 'row'] as const) {
      await (await open({ url, strategy, connection: { user: 'rds', password } }).acquire('k')).release();
    }
    expect(asked).toBeGreaterThanOrEqual(2);
    const named = Object.assign(new URL(server.url), { username: 'rds' }).href;
    await (await open({ url: named, connection: { password: 'a token' } }).acquire('k')).release();
    const error = await failureOf(open({ url: named, connection: { password: () => 'wrong secret' } }).tryAcquire('k'));
    expect(String(error)).toMatch(/authentication failed/u);
    expect(String(error)).not.toContain('wrong secret');
  });

  it('connection says the authority of TLS that sslmode in the url cannot', async () => {
    const file = (part: string): string => join(server.directory, part);
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file('key')];
    execFileSync('openssl', ['req', '-x509', '-days', '2', ...subject, ...key, '-out', file('cert')], {
      stdio: 'ignore',
    });
    recipe.account.own(file('key'));
    recipe.account.own(file('cert'));
    await ask(`alter system set ssl_key_file = '${file('key')}'`);
    await ask(`alter system set ssl_cert_file = '${file('cert')}'`);
    await ask('alter system set ssl = on');
    await server.restart({ empty: false });
    const url = `${server.url}?sslmode=require`;
    const ssl = { ca: await readFile(file('cert'), 'utf8') };
    for (const strategy of ['lease', 'row', 'session'] as const) {
      await (await open({ url, strategy, connection: { ssl } }).acquire('k')).release();
    }
    const untrusted = failureOf(open({ url, connection: { ssl: {} }, patienceMs: 0 }).tryAcquire('k'));
    await expect(untrusted).resolves.toMatchObject({ message: expect.stringMatching(/self-signed certificate/u) });
  });

  it('a search path leads to the table of one schema: the same key of two is two locks', async () => {
    for (const strategy of ['lease', 'row', 'session'] as const) {
      const held = ['first', 'second'].map(async (schema) => {
        await ask(`create schema if not exists ${schema}`);
        const service = open({ url: server.url, connection: { options: `-c search_path=${schema}` }, strategy });
        return service.acquire('of both', { waitMs: 0 });
      });
      for (const lock of await Promise.all(held)) expect(lock.isHeld).toBe(true);
      for (const lock of await Promise.all(held)) await lock.release();
    }
    await ask('drop schema first, second cascade');
  });

  it('parsers of types may keep every text, as those that an application sets for all its clients', async () => {
    const types = { getTypeParser: () => (text: string) => text };
    for (const strategy of ['lease', 'row', 'session'] as const) {
      const service = open({ url: server.url, connection: { types }, strategy });
      await using lock = await service.acquire('parsed');
      expect(lock.isHeld).toBe(true);
      await expect(open({ url: server.url, strategy }).tryAcquire('parsed')).resolves.toBeNull();
    }
  });

  it('schema is that of the table, and search_path decides without it', async () => {
    await ask('create schema ours');
    await ask('create schema theirs');
    await (await open({ url: server.url, schema: 'ours' }).acquire('k')).release();
    const path = { options: '-c search_path=theirs' };
    await (await open({ url: server.url, connection: path }).acquire('k')).release();
    const rows = await ask(
      `select schemaname from pg_tables where tablename = 'distributed_lock' and schemaname <> 'public' order by 1`,
    );
    expect(rows.map(({ schemaname }) => schemaname)).toEqual(['ours', 'theirs']);
  });

  it('stream makes each socket', async () => {
    let made = 0;
    const stream = (): Socket => {
      made += 1;
      return new Socket();
    };
    await (await open({ url: server.url, connection: { stream }, strategy: 'row' }).acquire('k')).release();
    expect(made).toBeGreaterThan(0);
  });

  it('url may be a list: the first one that answers and takes writes', async () => {
    const dead = await elsewhere(server.url);
    const url = [dead, server.url];
    await (await open({ url }).acquire('k')).release();
    await ask('create role reader login in role pg_read_all_data');
    await ask('alter role reader set default_transaction_read_only = on');
    const readOnly = Object.assign(new URL(server.url), { username: 'reader' }).href;
    await (await open({ url: [readOnly, server.url] }).acquire('k')).release();
    const error = await failureOf(open({ url: [dead, readOnly] }).tryAcquire('k'));
    expect(String(error)).toMatch(/no longer takes writes|ECONNREFUSED/u);
  });

  it('a holder of a row writes through its client, and loses it all when the work fails', async () => {
    await ask('create table sold (n integer)');
    const service = open({ url: server.url, strategy: 'row' });
    await service.withLock('k', (lock) => rowClient(lock).query('insert into sold values ($1)', [1]));
    const failed = service.withLock('k', async (lock) => {
      await rowClient(lock).query('insert into sold values (2)');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await expect(ask('select n from sold')).resolves.toEqual([{ n: 1 }]);
    let late: ReturnType<typeof rowClient> | undefined;
    await service.withLock('k', async (lock) => void (late = rowClient(lock)));
    await expect(late?.query('insert into sold values (3)')).rejects.toThrow(/transaction is over/u);
  });
});

describeWanted(['mariadb'], 'options of the driver, %s', () => {
  const server = MysqlServer.shared('mariadb');
  const open = (options: MysqlOptions): LockService => keep(new LockService(mysql({ synchronize: true, ...options })));
  const ask = async (sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const connection = await openConnection('mariadb', server.url);
    const rows = await connection.ask(sql);
    await connection.end();
    return rows;
  };

  it('password may be a function, which is asked for each connection', async () => {
    await ask(`create user 'rds'@'%' identified by 'a token'`);
    await ask(`grant all on test.* to 'rds'@'%'`);
    const url = Object.assign(new URL(server.url), { username: 'rds' }).href;
    let asked = 0;
    const password = async (): Promise<string> => {
      asked += 1;
      return 'a token';
    };
    await (await open({ url, connection: { password } }).acquire('k')).release();
    await (await open({ url, connection: { password } }).acquire('k')).release();
    expect(asked).toBeGreaterThanOrEqual(2);
    const error = String(
      await failureOf(open({ url, connection: { password: () => 'wrong secret' } }).tryAcquire('k')),
    );
    expect(error).toMatch(/Access denied/u);
    expect(error).not.toContain('wrong secret');
  });

  it('rows may be nested for the application', async () => {
    await (await open({ url: server.url, connection: { nestTables: true } }).acquire('k')).release();
  });

  it('url may be a list, and of mariadb', async () => {
    const url = [await elsewhere(server.url), server.url.replace(/^\w+:/u, 'mariadb:')];
    await (await open({ url }).acquire('k')).release();
  });

  it('a holder of a row writes through its connection, and loses it all when the work fails', async () => {
    await ask('create table sold (n integer)');
    const service = open({ url: server.url, strategy: 'row' });
    await service.withLock('k', (lock) => mysqlRowClient(lock).execute('insert into sold values (?)', [1]));
    const failed = service.withLock('k', async (lock) => {
      await mysqlRowClient(lock).query('insert into sold values (2)');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await expect(ask('select n from sold')).resolves.toEqual([{ n: 1 }]);
  });
});

describe('options that can never work are refused at once', () => {
  it.each<[string, () => unknown]>([
    ['url', () => postgres({ url: 'http://me:secret@host' })],
    ['url', () => postgres({ url: [] })],
    ['connection', () => postgres({ connection: 'x' as unknown as object })],
    ['strategy', () => postgres({ url: 'postgres://h/d', strategy: 'rows' as 'row' })],
    ['poolSize', () => postgres({ url: 'postgres://h/d', poolSize: 3 })],
    ['url', () => mysql({})],
    ['url', () => mysql({ url: 'postgres://h/d' })],
    ['url', () => mysql({ url: 'mysql://me:sec#secret@h/d' })],
    ['url', () => mysql({ url: ['mysql://h/d', 'mysql://me:100%secret@h/d'] })],
    ['url', () => mysql({ url: 'mysql://me:secret@h/d?ssl-mode=REQUIRED' })],
    ['url', () => mysql({ url: ['mysql://h/d', 'mariadb://h/d?charset=utf8mb4&sslmode=require'] })],
    ['url', () => postgres({ url: 'postgres://me:sec/secret@h/d' })],
    ['file', () => sqlite({ file: ':memory:' })],
    ['file', () => sqlite({} as { file: string })],
    ['strategy', () => sqlite({ file: 'x', strategy: 'row' } as unknown as { file: string })],
    ['tableName', () => sqlite({ file: 'x', tableName: 'a.b' })],
  ])('%s: %s', (option, make) => {
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(expect.objectContaining({ option }));
    expect(make).not.toThrow(/secret/u);
  });

  it('and a password that has to be encoded is told so', () => {
    for (const url of ['mysql://me:se#cret@h/d', 'mysql://me:100%@h/d']) {
      expect(() => mysql({ url })).toThrow(/encodeURIComponent/u);
    }
    expect(() => postgres({ url: 'postgres://me:se/cret@h/d' })).toThrow(/encodeURIComponent/u);
    // Its driver takes this as it is.
    expect(() => postgres({ url: 'postgres://me:100%@h/d' })).not.toThrow();
  });

  it('and a lock of another backend has no client', () => {
    expect(() => rowClient({})).toThrow(LockConfigurationError);
    expect(() => mysqlRowClient({ attachment: new Database(':memory:') })).toThrow(LockConfigurationError);
  });
});
