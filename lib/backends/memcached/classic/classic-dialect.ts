import {
  type AddResult,
  counterExptime,
  type MemcachedDialect,
  type MemcachedLease,
  type StoredItem,
} from '../dialect.js';
import type { ItemNames } from '../item-names.js';
import type { MemcachedConnection } from '../transport/connection.js';
import { unexpectedReplyError } from '../error.js';
import { isCasValue } from '../meta-dialect.js';
import { addCommand, replaceCommand } from '../store-commands.js';
import { type Command, refusalError } from '../transport/pipeline.js';

/**
 * Commands that every memcached knows. Only the reply to `gets` shows that a lease was granted, because no other reply
 * repeats the name of the item.
 */
export class ClassicDialect implements MemcachedDialect {
  constructor(private readonly connection: Pick<MemcachedConnection, 'exchange'>) {}

  async acquireLease(
    { names, value, exptime }: MemcachedLease,
    firstToken: bigint,
  ): ReturnType<MemcachedDialect['acquireLease']> {
    const [isAdded, hasCounter, items] = await this.connection.exchange(
      addCommand(names.lease, value, exptime),
      incrementCommand(names.counter),
      getsCommand(names.lease, names.counter),
    );
    const token = hasCounter ? readToken(items, names) : await this.incrementCounter(names, firstToken);
    return { isAdded, token, item: items.get(names.lease) ?? null };
  }

  async incrementCounter(names: ItemNames, firstToken: bigint): Promise<bigint> {
    const [, hasCounter, items] = await this.connection.exchange(
      addCommand(names.counter, String(firstToken), counterExptime(firstToken)),
      incrementCommand(names.counter),
      getsCommand(names.counter),
    );
    if (!hasCounter)
      throw refusalError('SERVER_ERROR the counter of fencing tokens was deleted as soon as it was there');
    return readToken(items, names);
  }

  async replaceAndGetItem({ names, value, exptime }: MemcachedLease, cas: string): Promise<StoredItem | null> {
    const [, items] = await this.connection.exchange(
      replaceCommand(names.lease, value, exptime, cas),
      getsCommand(names.lease),
    );
    return items.get(names.lease) ?? null;
  }

  async getItem(name: string): Promise<StoredItem | null> {
    const [items] = await this.connection.exchange(getsCommand(name));
    return items.get(name) ?? null;
  }

  /** Overwrites the item with one that has expired, because no classic delete compares the cas unique. */
  async deleteItem(name: string, cas: string): Promise<boolean> {
    const [isDeleted] = await this.connection.exchange(replaceCommand(name, '', -1, cas));
    return isDeleted;
  }

  async addItem(name: string, value: string, exptime: number): Promise<AddResult> {
    const [isAdded, items] = await this.connection.exchange(addCommand(name, value, exptime), getsCommand(name));
    return { isAdded, item: items.get(name) ?? null };
  }
}

function incrementCommand(counter: string): Command<boolean> {
  return {
    text: `incr ${counter} 1\r\n`,
    read: ({ line }) => {
      if (/^\d{1,20}$/u.test(line)) return true;
      if (line === 'NOT_FOUND') return false;
      throw line.startsWith('CLIENT_ERROR cannot increment') ? refusalError(line) : unexpectedReplyError(line);
    },
  };
}

function getsCommand(...names: readonly string[]): Command<ReadonlyMap<string, StoredItem>> {
  const items = new Map<string, StoredItem>();
  let nextIndex = 0;
  return {
    text: `gets ${names.join(' ')}\r\n`,
    read: ({ line, data }) => {
      if (line === 'END') return items;
      const [code, name = '', , , cas] = line.split(' ');
      const index = names.indexOf(name, nextIndex);
      if (code !== 'VALUE' || data === undefined || index === -1 || !isCasValue(cas)) throw unexpectedReplyError(line);
      nextIndex = index + 1;
      items.set(name, { value: data, cas });
      return undefined;
    },
  };
}

function readToken(items: ReadonlyMap<string, StoredItem>, { counter }: ItemNames): bigint {
  const token = items.get(counter)?.value.trimEnd() ?? '';
  if (!/^\d{1,20}$/u.test(token)) throw refusalError('SERVER_ERROR the counter of fencing tokens is none');
  return BigInt(token);
}
