import { LockService } from 'nestjs-distributed-lock/core';
import { mysql, type MysqlOptions } from 'nestjs-distributed-lock/mysql';
import { MysqlServer } from '../../servers/mysql-server.js';
import { closeAfterEach, describeWanted, timeLimitOf } from '../../support/index.js';
import { openConnection } from './databases.js';

/** A character set that has no Ł, as some applications still set it for their connections. */
const CONNECTION = { charset: 'latin1_swedish_ci' };
const KEY = 'Łódź';
const LABEL = 'Kraków, Łódź';

describeWanted(
  ['mariadb', 'mysql'],
  'a connection whose character set cannot write the texts of the locks, %s',
  (name) => {
    const keep = closeAfterEach();
    const server = MysqlServer.shared(name);
    beforeAll(async () => {
      const connection = await openConnection(name, server.url);
      await connection.ask(
        'create table app_lock (name varchar(100) character set utf8mb4 primary key, owner varchar(100))',
      );
      await connection.end();
    });

    const open = (options: Partial<MysqlOptions> = {}): LockService => {
      const backend = mysql({ url: server.url, connection: CONNECTION, synchronize: true, ...options });
      return keep(new LockService(backend, { label: LABEL }));
    };

    it('lets in as many holders as the limit says', async () => {
      const [first, second] = [open(), open()];
      const locks = [
        await first.acquire(KEY, { limit: 2 }),
        await second.acquire(KEY, { limit: 2, waitMs: timeLimitOf(2_000) }),
      ];
      await expect(first.tryAcquire(KEY, { limit: 2 })).resolves.toBeNull();
      for (const lock of locks) await lock.release();
    });

    it.each(['lease', 'session'] as const)('shows the label of the holder: %s', async (strategy) => {
      const [holder, other] = [open({ strategy }), open({ strategy })];
      const lock = await holder.acquire(KEY);
      await expect(other.look(KEY)).resolves.toMatchObject({ holder: { label: LABEL } });
      await expect(other.acquire(KEY, { waitMs: 0 })).rejects.toMatchObject({ holder: { label: LABEL } });
      await lock.release();
    });

    it('lists the keys of a table of the application', async () => {
      const columns = { key: 'name', owner: 'owner', token: 'token', expiresAt: 'expires_at', metadata: 'about' };
      const service = open({ tableName: 'app_lock', columns });
      const lock = await service.acquire(KEY);
      const keys: string[] = [];
      for await (const key of service.keys()) keys.push(key);
      expect(keys).toEqual([KEY]);
      await lock.release();
    });
  },
);
