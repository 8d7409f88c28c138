import { LockConfigurationError } from '../../core/index.js';
import type { MemcachedDialect } from './dialect.js';
import { serverListName } from './item-names.js';

export interface ServerListOptions {
  readonly prefix: string;
  readonly serverListText: string;
}

/**
 * Compares the list of servers with the one that the server keeps. Stores the list on a server that has none: on a new
 * server, or after an eviction or a deletion.
 * @throws LockConfigurationError when other processes look for the same locks on other servers; MemcachedError
 */
export async function assertSameServerList(
  dialect: MemcachedDialect,
  { prefix, serverListText }: ServerListOptions,
): Promise<void> {
  const name = serverListName(prefix);
  // The item is read first, because a full server refuses to add an item even when the item is there.
  const item = (await dialect.getItem(name)) ?? (await dialect.addItem(name, serverListText, 0)).item;
  if (item === null || item.value === serverListText) return;
  throw new LockConfigurationError(
    `another process looks for the locks of "${prefix}" on other servers: on ${item.value}; here they are ${serverListText}. ` +
      `Stop all processes and delete "${name}" on every server, or use another prefix`,
    'servers',
  );
}
