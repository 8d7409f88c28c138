import { LockConfigurationError } from '../../core/index.js';
import { authenticate, type AuthenticationOptions } from './authentication.js';
import { ClassicDialect } from './classic/classic-dialect.js';
import type { MemcachedDialect } from './dialect.js';
import { serversName } from './item-names.js';
import { MemcachedConnection } from './transport/connection.js';
import { MemcachedError } from './error.js';
import type { MemcachedProtocol } from './options.js';
import { MetaDialect } from './meta-dialect.js';
import { probeCapabilities } from './capability-probe.js';
import { ServerClock } from './server-clock.js';
import { adviceOn, ask, secondsIn, statistics } from './server-statistics.js';
import { MemcachedSession } from './session.js';

export interface SessionOptions extends AuthenticationOptions {
  readonly protocol: MemcachedProtocol;
  readonly prefix: string;
  /** All that the keys are spread over, in one text. */
  readonly servers: string;
}

type DialectName = 'meta' | 'classic';

const DIALECTS: Readonly<Record<MemcachedProtocol, readonly [DialectName, DialectName?]>> = {
  auto: ['meta', 'classic'],
  meta: ['meta'],
  classic: ['classic'],
};

/**
 * Connects, and tries whether the server can keep locks.
 * @throws MemcachedError; LockConfigurationError when other processes look for the same locks on other servers
 */
export async function openSession(options: SessionOptions): Promise<MemcachedSession> {
  const [first, second] = DIALECTS[options.protocol];
  try {
    return await connect(options, first);
  } catch (error) {
    if (second === undefined || !(error instanceof MemcachedError) || error.kind !== 'protocol') throw error;
    return connect(options, second);
  }
}

async function connect(options: SessionOptions, name: DialectName): Promise<MemcachedSession> {
  const connection = await MemcachedConnection.open(options);
  try {
    await authenticate(connection, options);
    return await tryOut(connection, name, options);
  } catch (error) {
    connection.end(new MemcachedError('not-sent', 'the connection was of no use'));
    throw error;
  }
}

async function tryOut(
  connection: MemcachedConnection,
  name: DialectName,
  options: SessionOptions,
): Promise<MemcachedSession> {
  const dialect = name === 'meta' ? new MetaDialect(connection) : new ClassicDialect(connection);
  const sentAt = options.clock.now();
  const [, , [found], [settings]] = await Promise.all([
    connection.exchange(ask('version', /^VERSION /u)),
    name === 'meta' ? connection.exchange(ask('mn', /^MN/u)) : undefined,
    connection.exchange(statistics('')),
    connection.exchange(statistics(' settings')),
  ]);
  const clock = new ServerClock(secondsIn(found), sentAt);
  await Promise.all([probeCapabilities(dialect, options.prefix, clock, sentAt), compareServers(dialect, options)]);
  return new MemcachedSession(connection, dialect, clock, settings, options.clock, adviceOn(found, settings));
}

/** All processes must find a key on the same server: the first one leaves a note of where it looks. */
async function compareServers(dialect: MemcachedDialect, { prefix, servers }: SessionOptions): Promise<void> {
  const name = serversName(prefix);
  const { present } = await dialect.add(name, servers, 0);
  if (present === null || present.value === servers) return;
  throw new LockConfigurationError(
    `another process looks for the locks of "${prefix}" on other servers: on ${present.value}; here they are ${servers}. ` +
      `Stop all processes and delete "${name}" on every server, or use another prefix`,
    'servers',
  );
}
