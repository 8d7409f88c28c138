import Database from 'libsql';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LockService } from 'nestjs-distributed-lock/core';
import { postgres } from 'nestjs-distributed-lock/postgres';
import { redis } from 'nestjs-distributed-lock/redis';
import { tableStatements } from 'nestjs-distributed-lock/sql';
import { type CommandOutcome, runCommand } from '../../lib/command/run-command.js';
import { Client } from 'pg';
import { createClient } from 'redis';
import { openConnection } from '../backends/sql/databases.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { TemporaryDirectory } from '../support/temporary-directory.js';
import { RedisServer } from '../servers/redis-server.js';

const run = (...args: string[]): Promise<CommandOutcome> => runCommand(args, {});
const asJson = ({ output }: CommandOutcome): unknown => JSON.parse(output);

describe('a command that is called wrongly', () => {
  it.each([
    [[], /Usage/u],
    [['dance'], /Usage/u],
    [['sql', 'extra', '--database', 'postgres'], /Usage/u],
    [['sql'], /--database is postgres, mysql/u],
    [['sql', '--database', 'oracle'], /--database is postgres, mysql/u],
    [['status'], /LOCK_URL/u],
    [['status', '--url', 'sqlite:x', '--limit', 'many'], /--limit/u],
    [['migrate', '--url', 'redis://localhost'], /no SQL database/u],
    [['doctor', '--url', 'ftp://me:secret@host'], /begins with one of redis/u],
    [['doctor', '--url', 'ftp://me:base64/secret@host'], /began with ftp:$/u],
    [['doctor', '--url', '"postgres://me:base64/secret@host"'], /began with "postgres:$/u],
    [['status', '--url', 'secret'], /began with something else$/u],
    [['doctor', '--url', 'ftp://host?password=secret'], /began with ftp:$/u],
    [['migrate', '--url', 'redis://:base64/secret@host'], /no SQL database/u],
    [['doctor', '--url', 'memcached://me:secret@host'], /without a user and a password/u],
    [['doctor', '--url', 'etcd://me:secret@host:2379'], /without a user and a password/u],
    [['status', '--url', 'sqlite::memory:'], /the path of a SQLite file/u],
    [['doctor', '--verbose'], /Unknown option/u],
    [['sql', '--database', 'postgres', '--table', 'a; drop'], /^--table must be a plain identifier/u],
    [['migrate', '--url', 'sqlite:x', '--fence', 'a; drop'], /^--fence must be a plain identifier/u],
    [['status', '--url', 'postgres://localhost:1', '--table', 'a; drop'], /^--table must be/u],
    [['doctor', '--url', 'postgres://localhost:1', '--table', 'a; drop'], /^--table must be/u],
    [['migrate', '--url', 'sqlite:x', '--table', 'app.locks'], /^--table must have no schema on SQLite/u],
    [['sql', '--database', 'sqlite', '--fence', 'app.fences'], /^--fence must have no schema on SQLite/u],
  ])('ends with 2 and says why: %j', async (args, why) => {
    const { code, output, errorOutput } = await run(...args);
    expect({ code, output }).toEqual({ code: 2, output: '' });
    expect(errorOutput).toMatch(why);
    expect(errorOutput).not.toContain('secret');
  });

  it('shows its usage to who asks for it', async () => {
    await expect(run('--help')).resolves.toMatchObject({ code: 0, output: expect.stringMatching(/^Usage/u) });
  });
});

describe('a pipe whose reader has gone, as `head` does', () => {
  it('ends the command without a trace', async () => {
    const [runner, main] = ['../support/ts-run.cjs', '../../lib/command/main.ts'].map((path) =>
      fileURLToPath(new URL(path, import.meta.url)),
    );
    const child = spawn(process.execPath, [String(runner), String(main), '--help']);
    child.stdout.destroy();
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    const [code]: unknown[] = await once(child, 'close');
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
  });
});

describe('sql', () => {
  it('prints statements that SQLite takes', async () => {
    const { code, output } = await run('sql', '--database', 'sqlite');
    expect(code).toBe(0);
    const database = new Database(':memory:');
    database.exec(output);
    database.exec('select lock_key, token from distributed_lock; select token from distributed_lock_fence');
    database.close();
  });

  it('names the tables as it is told, and prints JSON', async () => {
    const names = ['--table', 'app.locks', '--fence', 'app.fences'];
    const outcome = await run('sql', '--database', 'postgres', ...names, '--json');
    expect(asJson(outcome)).toEqual(tableStatements('postgres', { lock: 'app.locks', fence: 'app.fences' }));
    expect(asJson(outcome)).toEqual(expect.arrayContaining(['create schema if not exists "app"']));
  });
});

describe('on PostgreSQL', () => {
  const server = PostgresServer.shared();
  const on = (...args: string[]): Promise<CommandOutcome> => runCommand(args, { LOCK_URL: server.url });
  const ask = async (sql: string): Promise<void> => {
    const connection = await openConnection('postgres', server.url);
    await connection.ask(sql);
    await connection.end();
  };

  it('status and doctor say what to do about missing tables; migrate makes them, again and again', async () => {
    for (const command of ['status', 'doctor']) {
      const { code, errorOutput } = await on(command);
      expect(code).toBe(1);
      expect(errorOutput).toMatch(/distributed_lock cannot be used.*npx nestjs-distributed-lock migrate/u);
    }
    await expect(on('migrate')).resolves.toMatchObject({ code: 0 });
    await expect(on('migrate')).resolves.toMatchObject({ code: 0 });
    await expect(on('status')).resolves.toMatchObject({ code: 0, output: 'both tables are there\n0 keys are held' });
  });

  it('migrate says what to do about a table of another shape, and finds the schema in the address', async () => {
    const url = `${server.url}?schema=other`;
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query('create schema other');
    await client.query('create table other.distributed_lock_fence (resource text primary key, token text)');
    const { code, errorOutput } = await run('migrate', '--url', url);
    expect(code).toBe(1);
    expect(errorOutput).toMatch(/other\.distributed_lock_fence .*token is text, and must be bigint.*Drop it/u);
    await client.query('drop table other.distributed_lock_fence');
    await client.end();
    await expect(run('migrate', '--url', url)).resolves.toMatchObject({ code: 0 });
    await expect(run('status', '--url', url)).resolves.toMatchObject({ code: 0 });
  });

  it('migrate may run in several processes at once, and by a user who may create nothing once the tables are there', async () => {
    const names = ['--table', 'race', '--fence', 'race_fence'];
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => on('migrate', ...names)));
    expect(outcomes.map(({ code, errorOutput }) => errorOutput ?? code)).toEqual(outcomes.map(() => 0));
    await ask('create role app login');
    await ask('grant select, insert, update on race, race_fence to app');
    const url = Object.assign(new URL(server.url), { username: 'app' }).href;
    await expect(on('migrate', ...names, '--url', url)).resolves.toMatchObject({ code: 0 });
    const refused = await on('migrate', '--table', 'new', '--url', url);
    expect(refused).toMatchObject({ code: 1, errorOutput: expect.stringMatching(/permission denied for schema/u) });
  });

  it('migrate never says that a table is there which is none of ours', async () => {
    await ask('create table alien (n integer)');
    const { code, errorOutput } = await on('migrate', '--table', 'alien');
    expect(code).toBe(1);
    expect(errorOutput).toMatch(/the table alien cannot be used for locks/u);
  });

  it('status tells who has which key, and how many wait', async () => {
    await on('migrate');
    await using service = new LockService(postgres({ url: server.url }), { namespace: 'shop' });
    await using lock = await service.acquire('sale_1');
    await using other = await service.acquire('sale_2', { mode: 'shared' });
    const { output } = await on('status', '--prefix', 'shop:');
    expect(output).toMatch(/2 keys are held/u);
    expect(output).toMatch(
      new RegExp(`"shop:sale_1": .*\\(pid ${process.pid}\\), for \\d+\\.\\d s more, token ${lock.fencingToken}`, 'u'),
    );
    expect(output).toContain('"shop:sale_2": ');
    expect(other.isHeld).toBe(true);
    expect((await on('status', '--limit', '1')).output).toMatch(/1 keys are held, or more/u);
    expect((await on('status', '--prefix', 'nobody')).output).toMatch(/0 keys are held/u);
    expect(asJson(await on('status', '--json', '--limit', '1'))).toMatchObject({ held: [{ holder: {} }] });
  });

  it('doctor tells what a crash can undo, and leaves no key behind', async () => {
    await on('migrate');
    const { code, output } = await on('doctor');
    expect(code).toBe(1);
    expect(output).toMatch(/is up\na lock and its release take \d+\.\d\d ms/u);
    expect(output).toMatch(/its clock is (as ours|\d+ ms (ahead of|behind) ours)/u);
    expect(output).toMatch(/advice: .*fsync is off/u);
    expect(output).toMatch(/guarantee: best-effort/u);
    expect((await on('status')).output).toMatch(/0 keys are held/u);
    await on('doctor');
    const connection = await openConnection('postgres', server.url);
    const rows = await connection.ask(`select from distributed_lock where lock_key like '%doctor%'`);
    await connection.end();
    expect(rows).toHaveLength(1);
    const secrets = await on('doctor', '--url', `${server.url.replace('@', ':secret@')}?password=secret`);
    expect(secrets.output).toMatch(new RegExp(`^postgres://127.0.0.1:${server.port}/\\w+ is up`, 'u'));
    expect(secrets.output).not.toContain('secret');
  });
});

describe('on Redis', () => {
  it('doctor and status need no tables', async () => {
    const server = await RedisServer.start();
    try {
      const url = server.url;
      await using service = new LockService(redis({ url }));
      await using lock = await service.acquire('held');
      await expect(run('status', '--url', url)).resolves.toMatchObject({
        code: 0,
        output: expect.stringMatching(new RegExp(`^1 keys are held\\n  "held": .*token ${lock.fencingToken}$`, 'u')),
      });
      expect(asJson(await run('doctor', '--url', url, '--json'))).toMatchObject({
        status: 'up',
        guarantee: 'best-effort',
        medianMs: expect.any(Number),
      });
    } finally {
      await server.stop();
    }
  });

  it('status goes on after a key that it cannot read, and shows no control characters of others', async () => {
    const server = await RedisServer.start();
    try {
      const { url } = server;
      await using service = new LockService(redis({ url }), { label: 'api\u001B[2J\u009Bm\u202E' });
      await using lock = await service.acquire('held\u009B');
      const client = await createClient({ url }).connect();
      await client.rPush('lock:{foreign}', 'of another program');
      await client.close();
      const { code, output } = await run('status', '--url', url);
      expect(output).toContain(String.raw`"held\u{9B}": api\u{1B}[2J\u{9B}m\u{202E} (pid`);
      expect(output).toMatch(/"foreign".*WRONGTYPE/u);
      expect({ code, isHeld: lock.isHeld }).toEqual({ code: 1, isHeld: true });
      expect(asJson(await run('status', '--url', url, '--json'))).toMatchObject({
        held: [{ key: 'held\u009B' }],
        unreadable: [{ key: 'foreign', error: expect.stringContaining('WRONGTYPE') }],
      });
    } finally {
      await server.stop();
    }
  });

  it('ends with 1 where nobody answers, and tells no password', async () => {
    const { code, output, errorOutput } = await run('doctor', '--url', 'redis://:secret@localhost:1');
    expect(code).toBe(1);
    expect(`${output}${errorOutput}`).toMatch(/ECONNREFUSED/u);
    expect(`${output}${errorOutput}`).not.toContain('secret');
  });
});

describe('on SQLite', () => {
  it('migrate makes the file, and says what to install where no driver is there', async () => {
    using directory = new TemporaryDirectory('command');
    const outcome = await run('migrate', '--url', `sqlite:${join(directory.path, 'locks.db')}`);
    if (process.getBuiltinModule('node:sqlite')) expect(outcome).toMatchObject({ code: 0 });
    else expect(outcome.errorOutput).toMatch(/npm install better-sqlite3/u);
  });
});
