import { type Clock, LockConfigurationError, systemClock } from '../../core/index.js';
import { authenticate } from './authentication.js';
import { probeCapabilities } from './capability-probe.js';
import { ClassicDialect } from './classic/classic-dialect.js';
import type { MemcachedDialect, Present } from './dialect.js';
import { MemcachedError } from './error.js';
import { serversName } from './item-names.js';
import { MetaDialect } from './meta-dialect.js';
import type { ResolvedMemcachedOptions } from './options.js';
import { ServerClock } from './server-clock.js';
import { adviceOn, KNOWS_META, statistics } from './server-statistics.js';
import { MemcachedConnection, type MemcachedConnectionOptions } from './transport/connection.js';

export interface VerifiedConnectionOptions
  extends MemcachedConnectionOptions, Pick<ResolvedMemcachedOptions, 'credentials' | 'protocol' | 'prefix'> {
  /** All servers that the keys are spread over, in one text. */
  readonly servers: string;
}

/** The clocks drift apart: an older reading of the server's clock is taken again. */
const READ_AGAIN_MS = 30_000;

/** Connection to a server that was verified to keep locks, with the state that is valid on this connection only. */
export class VerifiedConnection {
  /**
   * Items of the leases, by owner. Their cas uniques are valid on this connection only: a restarted server gives the
   * same ones again.
   */
  readonly leases = new Map<string, Present>();
  #reading: Promise<void> | undefined;

  constructor(
    readonly transport: MemcachedConnection,
    readonly dialect: MemcachedDialect,
    readonly clock: ServerClock,
    private readonly settings: ReadonlyMap<string, string>,
    /** Advice for an operator. */
    public advice?: string,
    private readonly ourClock: Clock = systemClock,
  ) {}

  /**
   * Connects, and probes whether the server can keep locks.
   * @throws MemcachedError; LockConfigurationError when other processes look for the same locks on other servers
   */
  static async open(options: VerifiedConnectionOptions): Promise<VerifiedConnection> {
    const { protocol } = options;
    try {
      return await connect(options, protocol === 'classic' ? 'classic' : 'meta');
    } catch (error) {
      const isUnknown = error instanceof MemcachedError && error.kind === 'protocol';
      if (protocol !== 'auto' || !isUnknown) throw error;
      return connect(options, 'classic');
    }
  }

  /** Makes sure that the server's clock is known well enough to ask for a lease. */
  async prepare(): Promise<void> {
    if (this.ourClock.now() - this.clock.readAt < READ_AGAIN_MS) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const sentAt = this.ourClock.now();
    const [found] = await this.transport.exchange(statistics(''));
    this.clock.read(Number(found.get('time')), sentAt);
    this.advice = adviceOn(found, this.settings);
  }
}

async function connect(options: VerifiedConnectionOptions, name: 'meta' | 'classic'): Promise<VerifiedConnection> {
  const transport = await MemcachedConnection.open(options);
  try {
    await authenticate(transport, options.credentials, options.connectTimeoutMs);
    const dialect = name === 'meta' ? new MetaDialect(transport) : new ClassicDialect(transport);
    const sentAt = systemClock.now();
    const [, [found], [settings]] = await Promise.all([
      name === 'meta' ? transport.exchange(KNOWS_META) : undefined,
      transport.exchange(statistics('')),
      transport.exchange(statistics(' settings')),
    ]);
    const clock = new ServerClock(Number(found.get('time')), sentAt);
    await Promise.all([probeCapabilities(dialect, options.prefix, clock, sentAt), compareServers(dialect, options)]);
    return new VerifiedConnection(transport, dialect, clock, settings, adviceOn(found, settings));
  } catch (error) {
    transport.end(new MemcachedError('not-sent', 'the connection was of no use'));
    throw error;
  }
}

/** All processes must find a key on the same server: the first one leaves a note of where it looks. */
async function compareServers(
  dialect: MemcachedDialect,
  { prefix, servers }: VerifiedConnectionOptions,
): Promise<void> {
  const name = serversName(prefix);
  const { present } = await dialect.add(name, servers, 0);
  if (present === null || present.value === servers) return;
  throw new LockConfigurationError(
    `another process looks for the locks of "${prefix}" on other servers: on ${present.value}; here they are ${servers}. ` +
      `Stop all processes and delete "${name}" on every server, or use another prefix`,
    'servers',
  );
}
