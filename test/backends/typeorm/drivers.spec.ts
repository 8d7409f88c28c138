import mysql from 'mysql2';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import pg from 'pg';
import { aborted, atLeastMs, failureOf } from '../../support/index.js';
import { describeServers } from './sql-world.js';

/** Servers count whole seconds. */
const TTL_MS = Math.ceil(atLeastMs(6_000) / 1_000) * 1_000;

/** Asks for no socket, as pg-native and mysql do. */
const WITH_OWN_SOCKETS = {
  postgres: {
    ...pg,
    native: undefined,
    Pool: class extends pg.Pool {
      constructor(options: pg.PoolConfig) {
        Reflect.deleteProperty(options, 'stream');
        super(options);
      }
    },
  },
  mariadb: {
    ...mysql,
    createPool: (options: mysql.PoolOptions) => {
      Reflect.deleteProperty(options, 'stream');
      return mysql.createPool(options);
    },
  },
};

/** Its clients, by what they say of their session. */
const asked: ((sql: string) => Promise<unknown>)[] = [];

class ClientWithoutId extends pg.Client {
  constructor(options: pg.ClientConfig) {
    super(options);
    asked.push(async (sql) => (await this.query(sql)).rows);
  }
  get processID(): null {
    return null;
  }
  set processID(_: unknown) {}
}

/** Keeps the session's id to itself, as pg-native does. */
const WITHOUT_ID = {
  postgres: {
    ...pg,
    native: undefined,
    Pool: class extends pg.Pool {
      constructor(options: pg.PoolConfig) {
        super(Object.assign(options, { Client: ClientWithoutId }));
      }
    },
  },
  mariadb: {
    ...mysql,
    createPool: (options: mysql.PoolOptions) => {
      const pool = mysql.createPool(options);
      pool.on('connection', (connection) => {
        Object.defineProperty(connection, 'threadId', { value: null });
        asked.push(async (sql) => (await connection.promise().query(sql))[0]);
      });
      return pool;
    },
  },
};

/** The settings that the next client of a pooler would find. */
const SETTINGS = {
  postgres: `select current_setting('statement_timeout') as setting`,
  mariadb: 'select @@session.innodb_lock_wait_timeout as setting',
};
const SESSIONS = {
  postgres: `select pid as id from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  mariadb: `select id from information_schema.processlist where id <> connection_id() and user <> 'system user'`,
};
const KILL = {
  postgres: (id: unknown) => `select pg_terminate_backend(${String(id)})`,
  mariadb: (id: unknown) => `kill ${String(id)}`,
};

describeServers('a driver that', (world, type) => {
  const dataSource = (more: object) => ({ options: Object.assign({ type, url: world.url }, more) });

  it.each(['row', 'session'] as const)(
    'makes its own sockets is refused, since their end is not seen: %s',
    async (strategy) => {
      const service = world.service({ strategy, dataSource: dataSource({ driver: WITH_OWN_SOCKETS[type] }) });
      const error = await failureOf(service.tryAcquire('own-sockets'));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(String(error)).toMatch(/the driver makes sockets of its own/u);
    },
  );

  it('makes its own sockets has leases', async () => {
    const service = world.service({ dataSource: dataSource({ driver: WITH_OWN_SOCKETS[type] }) });
    await (await service.acquire('own-sockets')).release();
  });

  it('tells no id is refused by sessions, as a pooler may be there', async () => {
    const service = world.service({ strategy: 'session', dataSource: dataSource({ driver: WITHOUT_ID[type] }) });
    const error = await failureOf(service.tryAcquire('no-id'));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toMatch(/tells the session's id/u);
  });

  it('tells no id has leases that leave no setting behind in what may be another session', async () => {
    const service = world.service({ dataSource: dataSource({ driver: WITHOUT_ID[type] }) });
    asked.length = 0;
    await (await service.acquire('no-id')).release();
    expect(asked).toHaveLength(1);
    await expect(asked[0]?.(SETTINGS[type])).resolves.toEqual([{ setting: type === 'postgres' ? '0' : '50' }]);
  });

  it.each(['row', 'session'] as const)(
    'says that its connection is gone ends the hold, whatever its stream says: %s',
    async (strategy) => {
      const stream = (): Duplex => tunnelWithoutEnd(world.harness.server().port);
      const options = dataSource({ extra: { stream } });
      const ttl = strategy === 'session' ? { sessionTtlMs: TTL_MS } : {};
      const service = world.service({ strategy, dataSource: options, ...ttl });
      const lock = await service.acquire('tunnel', { ttlMs: TTL_MS });
      const told = aborted(lock.signal);
      const since = performance.now();
      for (const { id } of await world.ask(SESSIONS[type])) await world.ask(KILL[type](id)).catch(() => undefined);
      const took = (await told) - since;
      process.stdout.write(`${type} ${strategy}: told ${took.toFixed(0)} ms after its end, TTL ${TTL_MS} ms\n`);
      expect(took).toTakeLessThan((TTL_MS * 2) / 3);
      expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    },
  );
});

/** A tunnel that never tells its end. */
function tunnelWithoutEnd(port: number): Duplex {
  const socket = connect(port, '127.0.0.1');
  const tunnel = new Duplex({
    read: () => undefined,
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    emitClose: false,
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (chunk) => tunnel.push(chunk)).on('error', () => undefined);
  // `pg` connects what it is given, and sets it up as it would a socket.
  return Object.assign(tunnel, {
    connect: () => socket.once('connect', () => tunnel.emit('connect')),
    setNoDelay: () => tunnel,
    setKeepAlive: () => tunnel,
    ref: () => tunnel,
    unref: () => tunnel,
  });
}
