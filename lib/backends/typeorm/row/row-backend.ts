import type { DataSource, DataSourceOptions } from 'typeorm';
import {
  AbortListener,
  type AcquireRequest,
  type BackendFactory,
  type HealthSource,
  Deadline,
  type LockBackend,
  LockBackendError,
  LockError,
  replyTimeout,
} from '../../../core/index.js';
import { assertNumbers } from '../assert-numbers.js';
import { DEFAULT_LOCK_TABLE } from '../lock-table.js';
import { OwnConnections } from '../own-connections.js';
import { dialectOf } from '../databases.js';
import type { Query } from '../sql-dialect.js';
import { assertTableName, quotedTable } from '../table-name.js';
import { RowContender, type RowTarget } from './row-contender.js';
import type { RowLease } from './row-lease.js';
import { rowLocksOf } from './databases.js';
import { RowPool } from './row-pool.js';

export interface RowBackendOptions {
  /** `schema.name` is in another schema (on MySQL: database) than that of the data source. @default 'distributed_lock' */
  tableName?: string;
  /** Creates the table where it is missing. @default false */
  synchronize?: boolean;
  /**
   * How many connections of their own row locks may use: one for each lock held, and for each waited for. Up to
   * two more serve `checkSequencer`. @default 10
   */
  poolSize?: number;
  /** How long a new connection may take, until it is ready for statements. @default 2_000 */
  connectTimeoutMs?: number;
  /** How long to wait for the answer to one of our statements. @default 1_000 */
  statementTimeoutMs?: number;
  /** How long deadlocks and the like are tried again. @default 2_000 */
  patienceMs?: number;
}

/**
 * The pessimistic lock: `SELECT … FOR UPDATE` on the key's row, in a `READ COMMITTED` transaction that the holder gets
 * (`rowManager(lock)`) and that lasts as long as the lock. What is written through it is committed with success and undone
 * otherwise; a holder that lost the lock cannot commit. PostgreSQL, MySQL 8 and MariaDB; other keys' rows stay free.
 *
 * The TTL is how long the server waits for a word from the transaction (`idle_in_transaction_session_timeout`,
 * `wait_timeout`, in whole seconds): a dead holder frees the row with its connection, a frozen one when that time is over. The
 * renewal uses the same connection, so one statement of the holder's own must not run for longer than the TTL.
 *
 * The token is `max(previous + 1, the server's clock in µs)`. A holder that dies takes the number it wrote with it, but the next
 * one gets the row later, by the same clock, and so a higher number; only a clock set back meanwhile could repeat one.
 * @throws LockConfigurationError
 */
export function rowBackend(
  dataSource: DataSource | { readonly options: DataSourceOptions },
  options: RowBackendOptions = {},
): BackendFactory {
  const { tableName = DEFAULT_LOCK_TABLE, synchronize = false } = options;
  const { poolSize = 10, connectTimeoutMs = 2_000, statementTimeoutMs = 1_000, patienceMs = 2_000 } = options;
  const locks = rowLocksOf(dataSource.options.type);
  assertTableName('tableName', tableName);
  assertNumbers('above 0, and whole', { poolSize });
  assertNumbers('above 0', { connectTimeoutMs, statementTimeoutMs });
  assertNumbers('of 0 or more', { patienceMs });
  const dialect = dialectOf(dataSource.options.type);
  const table = quotedTable(dialect, dataSource.options, tableName);
  const onOpen = async (query: Query): Promise<void> => locks.prepareToLook?.(query);
  return () => {
    const pool = new RowPool({ options: dataSource.options, table, synchronize, connectTimeoutMs }, poolSize);
    const lookouts = new OwnConnections({
      options: dataSource.options,
      dialect,
      connectTimeoutMs,
      statementTimeoutMs,
      onOpen,
    });
    const name = `typeorm:${dataSource.options.type}-row`;
    return new RowBackend(name, { table, locks, pool, statementTimeoutMs }, lookouts, patienceMs);
  };
}

export class RowBackend implements LockBackend {
  readonly guarantee = 'best-effort';
  readonly endsWithConnection = true;
  readonly #leases = new Map<string, RowLease>();
  readonly #tasks = new Set<Promise<unknown>>();

  constructor(
    readonly name: string,
    private readonly target: Omit<RowTarget, 'key'>,
    /** For who only looks: all of the pool's may be in use by holders. Opened with the first look. */
    private readonly lookouts: OwnConnections,
    private readonly patienceMs: number,
  ) {}

  /** Opens a connection, which looks at the table. */
  async start(): Promise<void> {
    const { pool } = this.target;
    pool.giveBack(await pool.take(Deadline.after(0)));
  }

  get health(): HealthSource {
    return this.target.pool.health;
  }

  /** The lease is a `RowLease`, whose `attachment` is the transaction's `EntityManager`. */
  async acquire(key: string, request: AcquireRequest): Promise<RowLease | null> {
    request.signal?.throwIfAborted();
    const known = this.#leases.get(request.owner);
    try {
      if (known && (await known.renew())) return known;
      return await this.#contend(new RowContender({ ...this.target, key }, request, this.patienceMs), request);
    } catch (error) {
      if (error instanceof LockError || (request.signal?.aborted === true && error === request.signal.reason))
        throw error;
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: error });
    }
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const { locks, table } = this.target;
    return locks.isHeldBy(this.lookouts.query, table, { key, owner });
  }

  async close(): Promise<void> {
    await Promise.all([this.target.pool.close(), this.lookouts.close()]);
    await Promise.all(this.#tasks);
  }

  async #contend(contender: RowContender, request: AcquireRequest): Promise<RowLease | null> {
    const task = contender.run();
    const settled = task.then(
      () => undefined,
      () => undefined,
    );
    this.#tasks.add(settled);
    void settled.finally(() => this.#tasks.delete(settled));
    const lease = await orGivenUp(task, contender, request);
    if (lease) this.#remember(request.owner, lease);
    return lease;
  }

  #remember(owner: string, lease: RowLease): void {
    this.#leases.set(owner, lease);
    lease.onOver(() => this.#leases.delete(owner));
  }
}

/** A wait for a row cannot be called off: whoever gives up leaves it to end by itself, and what it brings to be given back. */
function orGivenUp(
  task: Promise<RowLease | null>,
  contender: RowContender,
  { deadline, signal }: AcquireRequest,
): Promise<RowLease | null> {
  return new Promise<RowLease | null>((resolve, reject) => {
    let isOver = false;
    const over = (settle: () => void): void => {
      isOver = true;
      contender.giveUp();
      timer?.cancel();
      listener?.end();
      settle();
    };
    const onAbort = (): void => over(() => reject(signal?.reason));
    // To ask takes several statements, and the deadline may fall between them.
    const onDeadline = (): void => {
      const silentInMs = contender.answerDueAt - deadline.clock.now();
      if (isOver) return;
      if (silentInMs <= 0) over(() => reject(new Error('no answer before the deadline')));
      else if (contender.refused) over(() => resolve(null));
      else timer = replyTimeout(deadline.clock, silentInMs, onDeadline);
    };
    let timer = deadline.passed ? undefined : deadline.clock.schedule(deadline.remainingMs, onDeadline);
    const listener = signal && new AbortListener(signal, onAbort);
    task.then(
      (lease) => (isOver ? lease?.release().catch(() => undefined) : over(() => resolve(lease))),
      (error: unknown) => over(() => reject(error)),
    );
  });
}
