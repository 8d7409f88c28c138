import { randomUUID } from 'node:crypto';
import { systemClock } from '../../core/index.js';
import type { MemcachedDialect } from './dialect.js';
import { MemcachedError } from './error.js';
import { serverIdName } from './item-names.js';
import { statisticsCommand } from './server-statistics.js';
import type { VerifiedConnection } from './verified-connection.js';

/** Facts by which two connections tell whether they have reached the same server. */
export interface ServerIdentity {
  /** Random text that the first connection stored on the server. */
  readonly id: string;
  /** Date of the server's start and its process id, which outlive the loss of all items. */
  readonly processText: string;
  /** Time of the server's start in milliseconds of this process's clock. */
  readonly startedAt: number;
}

/** Maximum error of `startedAt` in milliseconds: a server's uptime counts whole seconds, and begins with 2. */
const MAX_START_ERROR_MS = 5_000;

/** @throws MemcachedError */
export async function readServerIdentity(
  { transport, dialect }: VerifiedConnection,
  prefix: string,
): Promise<ServerIdentity> {
  const sentAt = systemClock.now();
  const [[statisticsByName], id] = await Promise.all([
    transport.exchange(statisticsCommand('')),
    readServerId(dialect, prefix),
  ]);
  const uptimeS = Number(statisticsByName.get('uptime'));
  const processText = `${Number(statisticsByName.get('time')) - uptimeS} ${statisticsByName.get('pid')}`;
  return { id, processText, startedAt: sentAt - uptimeS * 1_000 };
}

/** Returns the server's id. First stores a random one on a server that has none. @throws MemcachedError */
export async function readServerId(dialect: MemcachedDialect, prefix: string): Promise<string> {
  const name = serverIdName(prefix);
  // A full server refuses to add an item even when the item is there.
  const item = (await dialect.getItem(name)) ?? (await dialect.addItem(name, randomUUID(), 0)).item;
  if (item === null) throw new MemcachedError('refused', 'the server did not keep its id');
  return item.value;
}

/**
 * Returns whether `present` is another server that already ran while `former` still sent something. A server that
 * started later is taken for a restart of `former`.
 * @param formerHeardAt time at which the former server last sent something
 */
export function isOtherServer(former: ServerIdentity, formerHeardAt: number, present: ServerIdentity): boolean {
  const isSame = present.id === former.id || present.processText === former.processText;
  return !isSame && present.startedAt + MAX_START_ERROR_MS < formerHeardAt;
}
