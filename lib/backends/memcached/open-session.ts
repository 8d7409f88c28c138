import { LockConfigurationError } from '../../core/index.js';
import { authenticate, type AuthenticationOptions } from './authentication.js';
import { ClassicDialect } from './classic/classic-dialect.js';
import type { Dialect } from './dialect.js';
import { serversName } from './item-names.js';
import { Link } from './transport/connection.js';
import { MemcachedFailure } from './error.js';
import type { Protocol } from './options.js';
import { MetaDialect } from './meta-dialect.js';
import { rehearse } from './capability-probe.js';
import { ServerClock } from './server-clock.js';
import { adviceOn, ask, secondsIn, statistics } from './server-statistics.js';
import { Session } from './session.js';

export interface SessionOptions extends AuthenticationOptions {
  readonly protocol: Protocol;
  readonly prefix: string;
  /** All that the keys are spread over, in one text. */
  readonly servers: string;
}

type DialectName = 'meta' | 'classic';

const DIALECTS: Readonly<Record<Protocol, readonly [DialectName, DialectName?]>> = {
  auto: ['meta', 'classic'],
  meta: ['meta'],
  classic: ['classic'],
};

/**
 * Connects, and tries whether the server can keep locks.
 * @throws MemcachedFailure; LockConfigurationError when other processes look for the same locks on other servers
 */
export async function openSession(options: SessionOptions): Promise<Session> {
  const [first, second] = DIALECTS[options.protocol];
  try {
    return await connect(options, first);
  } catch (error) {
    if (second === undefined || !(error instanceof MemcachedFailure) || error.kind !== 'protocol') throw error;
    return connect(options, second);
  }
}

async function connect(options: SessionOptions, name: DialectName): Promise<Session> {
  const link = await Link.open(options);
  try {
    await authenticate(link, options);
    return await tryOut(link, name, options);
  } catch (error) {
    link.end(new MemcachedFailure('not-sent', 'the connection was of no use'));
    throw error;
  }
}

async function tryOut(link: Link, name: DialectName, options: SessionOptions): Promise<Session> {
  const dialect = name === 'meta' ? new MetaDialect(link) : new ClassicDialect(link);
  const sentAt = options.clock.now();
  const [, , [found], [settings]] = await Promise.all([
    link.exchange(ask('version', /^VERSION /u)),
    name === 'meta' ? link.exchange(ask('mn', /^MN/u)) : undefined,
    link.exchange(statistics('')),
    link.exchange(statistics(' settings')),
  ]);
  const clock = new ServerClock(secondsIn(found), sentAt);
  await Promise.all([rehearse(dialect, options.prefix, clock, sentAt), compareServers(dialect, options)]);
  return new Session(link, dialect, clock, settings, options.clock, adviceOn(found, settings));
}

/** All processes must find a key on the same server: the first one leaves a note of where it looks. */
async function compareServers(dialect: Dialect, { prefix, servers }: SessionOptions): Promise<void> {
  const name = serversName(prefix);
  const { present } = await dialect.add(name, servers, 0);
  if (present === null || present.value === servers) return;
  throw new LockConfigurationError(
    `another process looks for the locks of "${prefix}" on other servers: on ${present.value}; here they are ${servers}. ` +
      `Stop all processes and delete "${name}" on every server, or use another prefix`,
    'servers',
  );
}
