import Database from 'libsql';
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { sqlite } from 'nestjs-distributed-lock/sqlite';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import {
  aborted,
  atLeastMs,
  closeAfterEach,
  describeWanted,
  failureOf,
  TemporaryDirectory,
} from '../../support/index.js';
import { MEMORY_DIR } from '../../servers/memory-dir.js';

type DriverOptions = ConstructorParameters<typeof Database>[1];

/** Driver that keeps the databases it opened, and begins as better-sqlite3 does in WAL mode. */
class RecordingDriver extends Database {
  static databases: RecordingDriver[] = [];

  constructor(
    file: string,
    readonly givenOptions: DriverOptions,
  ) {
    super(file, givenOptions);
    this.exec('pragma synchronous = normal');
    RecordingDriver.databases.push(this);
  }
}

describeWanted(['sqlite-driver'], 'files of SQLite: %s', () => {
  const directory = TemporaryDirectory.shared('sqlite-files', MEMORY_DIR);
  const keep = closeAfterEach();
  afterEach(() => void (RecordingDriver.databases.length = 0));

  const open = (file: string): LockService =>
    keep(new LockService(sqlite({ file: join(directory, file), driver: RecordingDriver, synchronize: true })));
  const openByTypeOrm = (file: string, more: object = {}): LockService => {
    const common = { type: 'better-sqlite3', driver: RecordingDriver, database: join(directory, file) } as const;
    return keep(new LockService(typeorm({ dataSource: { options: Object.assign(common, more) }, synchronize: true })));
  };

  it.each([open, openByTypeOrm])('commits reach the disk before a lock is granted: %o', async (openFile) => {
    await (await openFile('synchronous.db').acquire('k')).release();
    const [database] = RecordingDriver.databases;
    expect(database?.prepare('pragma synchronous').all()).toEqual([{ synchronous: 2 }]);
  });

  it.each([
    ['sqlite', (file: string) => sqlite({ file, driver: Database, synchronize: true })],
    [
      'typeorm',
      (database: string) => {
        const options = { type: 'better-sqlite3', driver: Database, database, enableWAL: true } as const;
        return typeorm({ dataSource: { options }, synchronize: true });
      },
    ],
  ])('locks wait while another process has the file for itself: %s', async (name, backend) => {
    const file = join(directory, `busy-${name}.db`);
    const other = new Database(file);
    other.exec('create table stock (n integer); begin exclusive');
    setTimeout(() => other.exec('commit'), 100);
    expect(await keep(new LockService(backend(file))).tryAcquire('k')).toMatchObject({ isHeld: true });
    other.close();
  });

  it('a failure that has ended the transaction, such as a full disk, is the one that is reported', async () => {
    const service = open('full.db');
    await (await service.acquire('k')).release();
    const [database] = RecordingDriver.databases;
    database?.exec(`create trigger full_disk before update on distributed_lock
      begin select raise(rollback, 'no room on the disk'); end`);
    const error = await failureOf(service.tryAcquire('k'));
    expect(String(error)).toContain('no room on the disk');
    database?.exec('drop trigger full_disk');
    await (await service.acquire('k')).release();
  });

  it('statements of the locks are not shown to the verbose function of the application', async () => {
    await (await openByTypeOrm('verbose.db', { verbose: () => undefined }).acquire('k')).release();
    expect(RecordingDriver.databases[0]?.givenOptions).not.toHaveProperty('verbose', expect.any(Function));
  });

  it('integers of the driver may be bigint', async () => {
    const service = openByTypeOrm('bigint.db', {
      prepareDatabase: (database: Database.Database) => void database.defaultSafeIntegers(true),
    });
    await using lock = await service.acquire('k');
    const { holder } = await service.look('k');
    expect(holder?.leftMs).toBeGreaterThan(0);
    await expect(service.tryAcquire('k')).resolves.toBeNull();
    await expect(service.evict('k', holder?.owner)).resolves.toMatchObject({ owner: holder?.owner });
    expect(lock.isHeld).toBe(false);
  });

  it.each(['restored from a backup', 'deleted', 'deleted but for its -wal', 'without its -wal'])(
    'S17: a file that is %s ends the locks of the former one',
    async (change) => {
      const [file, backup] = ['replaced.db', 'backup.db'].map((name) => join(directory, `${change} ${name}`));
      if (!file || !backup) throw new TypeError('two names');
      const openFile = (path: string) =>
        keep(new LockService(sqlite({ file: path, driver: Database, synchronize: true })));
      const made = openFile(backup);
      await made.withLock('k', () => undefined);
      await made.close();
      const [holder, other] = [openFile(file), openFile(file)];
      const lock = await holder.acquire('k', { ttlMs: atLeastMs(1_500) });
      const ended = aborted(lock.signal);
      if (change !== 'without its -wal') await rm(file);
      if (change !== 'deleted but for its -wal') await rm(`${file}-wal`);
      if (change === 'restored from a backup') await copyFile(backup, file);
      await ended;
      expect(lock.isHeld).toBe(false);
      if (change !== 'restored from a backup') return;
      await expect(other.withLock('k', () => 'in the new file')).resolves.toBe('in the new file');
      await expect(holder.withLock('k', () => 'in the new file')).resolves.toBe('in the new file');
    },
  );

  it.each(['file:x?mode=memory&cache=shared', 'file:x?cache=shared&mode=memory', 'file:/x?vfs=memdb'])(
    'a database in memory is refused: %s',
    (file) => {
      expect(() => sqlite({ file })).toThrow(LockConfigurationError);
      expect(() => openByTypeOrm('x', { database: file })).toThrow(LockConfigurationError);
    },
  );
});
