import { type Clock, isLockError, systemClock } from '../../core/index.js';
import { authenticate } from './authentication.js';
import { probeCapabilities } from './capability-probe.js';
import { ClassicDialect } from './classic/classic-dialect.js';
import type { MemcachedDialect, StoredItem } from './dialect.js';
import { MemcachedError } from './error.js';
import { MetaDialect } from './meta-dialect.js';
import type { ResolvedMemcachedOptions } from './options.js';
import { ServerClock } from './server-clock.js';
import { assertSameServerList, type ServerListOptions } from './server-list.js';
import { getServerAdvice, META_NOOP_COMMAND, statisticsCommand } from './server-statistics.js';
import { MemcachedConnection, type MemcachedConnectionOptions } from './transport/connection.js';

export interface VerifiedConnectionOptions
  extends MemcachedConnectionOptions, ServerListOptions, Pick<ResolvedMemcachedOptions, 'credentials' | 'protocol'> {}

/** Age in milliseconds after which the server's clock is read again, because the clocks drift apart. */
const MAX_READING_AGE_MS = 30_000;

/** Connection whose server has passed `probeCapabilities` and `assertSameServerList`. */
export class VerifiedConnection {
  /**
   * Items of this process's leases, by owner. The cas uniques in the items are valid on this connection only: a
   * restarted server assigns the same numbers again.
   */
  readonly leaseItems = new Map<string, StoredItem>();
  onClockRead: () => void = () => undefined;
  #clockReadPromise: Promise<void> | undefined;

  constructor(
    readonly transport: MemcachedConnection,
    readonly dialect: MemcachedDialect,
    readonly clock: ServerClock,
    private readonly serverSettings: ReadonlyMap<string, string>,
    private readonly listOptions: ServerListOptions,
    public advice?: string,
    private readonly localClock: Clock = systemClock,
  ) {}

  /** @throws MemcachedError; LockConfigurationError when other processes look for the same locks on other servers */
  static async open(options: VerifiedConnectionOptions): Promise<VerifiedConnection> {
    const { protocol } = options;
    try {
      return await connect(options, protocol === 'classic' ? 'classic' : 'meta');
    } catch (error) {
      const isProtocolError = error instanceof MemcachedError && error.kind === 'protocol';
      if (protocol !== 'auto' || !isProtocolError) throw error;
      return connect(options, 'classic');
    }
  }

  /**
   * Reads the server's clock again if the last reading is too old.
   * @throws as `open`; a server list that differs also ends the connection
   */
  async refreshClock(): Promise<void> {
    if (this.localClock.now() - this.clock.readAt < MAX_READING_AGE_MS) return;
    this.#clockReadPromise ??= this.#readClock().finally(() => (this.#clockReadPromise = undefined));
    await this.#clockReadPromise;
  }

  async #readClock(): Promise<void> {
    const sentAt = this.localClock.now();
    const [[statisticsByName]] = await Promise.all([
      this.transport.exchange(statisticsCommand('')),
      assertSameServerList(this.dialect, this.listOptions).catch((error: unknown) => this.#endOnLockError(error)),
    ]);
    this.clock.record(Number(statisticsByName.get('time')), sentAt, this.localClock.now());
    this.advice = getServerAdvice(statisticsByName, this.serverSettings);
    this.onClockRead();
  }

  #endOnLockError(error: unknown): never {
    if (isLockError(error)) this.transport.end(new MemcachedError('unknown', error.message));
    throw error;
  }
}

async function connect(options: VerifiedConnectionOptions, protocol: 'meta' | 'classic'): Promise<VerifiedConnection> {
  const transport = await MemcachedConnection.open(options);
  try {
    await authenticate(transport, options.credentials, options.connectTimeoutMs);
    const dialect = protocol === 'meta' ? new MetaDialect(transport) : new ClassicDialect(transport);
    const sentAt = systemClock.now();
    const [, [statisticsByName], [serverSettings]] = await Promise.all([
      protocol === 'meta' ? transport.exchange(META_NOOP_COMMAND) : undefined,
      transport.exchange(statisticsCommand('')),
      transport.exchange(statisticsCommand(' settings')),
    ]);
    const clock = new ServerClock(Number(statisticsByName.get('time')), sentAt, systemClock.now());
    await Promise.all([
      probeCapabilities(dialect, options.prefix, clock, sentAt),
      assertSameServerList(dialect, options),
    ]);
    const advice = getServerAdvice(statisticsByName, serverSettings);
    return new VerifiedConnection(transport, dialect, clock, serverSettings, options, advice);
  } catch (error) {
    transport.end(new MemcachedError('not-sent', 'the connection was of no use'));
    throw error;
  }
}
