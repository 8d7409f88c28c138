import { type Addition, FENCE_TTL_S, type MemcachedDialect, type MemcachedLease, type Present } from '../dialect.js';
import type { ItemNames } from '../item-names.js';
import type { MemcachedConnection } from '../transport/connection.js';
import { unexpected } from '../error.js';
import { isCas } from '../meta-dialect.js';
import { type Command, refusal } from '../transport/pipeline.js';

/**
 * The commands that every memcached knows. Only the answer to `gets` repeats its question. All that a grant rests on is
 * therefore read by `gets`: the lease, with its owner, and the counter.
 */
export class ClassicDialect implements MemcachedDialect {
  constructor(private readonly connection: Pick<MemcachedConnection, 'exchange'>) {}

  async acquire(
    { names, value, expiresAt }: MemcachedLease,
    firstToken: bigint,
  ): ReturnType<MemcachedDialect['acquire']> {
    const [added, counted, items] = await this.connection.exchange(
      add(names.lease, value, expiresAt),
      increment(names.fence),
      gets(names.lease, names.fence),
    );
    const token = counted ? tokenIn(items, names) : await this.count(names, firstToken);
    return { added, token, present: items.get(names.lease) ?? null };
  }

  async count(names: ItemNames, firstToken: bigint): Promise<bigint> {
    const [, counted, items] = await this.connection.exchange(
      add(names.fence, String(firstToken), FENCE_TTL_S),
      increment(names.fence),
      gets(names.fence),
    );
    if (!counted) throw refusal('SERVER_ERROR the counter of fencing tokens was deleted as soon as it was there');
    return tokenIn(items, names);
  }

  async renew({ names, value, expiresAt }: MemcachedLease, cas: string): Promise<Present | null> {
    const [, items] = await this.connection.exchange(
      store(`cas ${names.lease} 0 ${expiresAt} ${Buffer.byteLength(value)} ${cas}`, value),
      gets(names.lease),
    );
    return items.get(names.lease) ?? null;
  }

  async look(name: string): Promise<Present | null> {
    const [items] = await this.connection.exchange(gets(name));
    return items.get(name) ?? null;
  }

  /** There is no delete that compares; a write that has expired already is one. */
  async remove(name: string, cas: string): Promise<boolean> {
    const [removed] = await this.connection.exchange(store(`cas ${name} 0 -1 0 ${cas}`, ''));
    return removed;
  }

  async add(name: string, value: string, expiresAt: number): Promise<Addition> {
    const [added, items] = await this.connection.exchange(add(name, value, expiresAt), gets(name));
    return { added, present: items.get(name) ?? null };
  }
}

function add(name: string, value: string, expiresAt: number): Command<boolean> {
  return store(`add ${name} 0 ${expiresAt} ${Buffer.byteLength(value)}`, value);
}

function store(request: string, value: string): Command<boolean> {
  return {
    text: `${request}\r\n${value}\r\n`,
    read: ({ line }) => {
      if (line === 'STORED') return true;
      if (line === 'NOT_STORED' || line === 'EXISTS' || line === 'NOT_FOUND') return false;
      throw unexpected(line);
    },
  };
}

/** False: there is no counter. */
function increment(fence: string): Command<boolean> {
  return {
    text: `incr ${fence} 1\r\n`,
    read: ({ line }) => {
      if (/^\d{1,20}$/u.test(line)) return true;
      if (line === 'NOT_FOUND') return false;
      throw line.startsWith('CLIENT_ERROR cannot increment') ? refusal(line) : unexpected(line);
    },
  };
}

/** The items that are there, in this order. */
function gets(...names: readonly string[]): Command<ReadonlyMap<string, Present>> {
  const items = new Map<string, Present>();
  let next = 0;
  return {
    text: `gets ${names.join(' ')}\r\n`,
    read: ({ line, data }) => {
      if (line === 'END') return items;
      const [code, name = '', , , cas] = line.split(' ');
      const index = names.indexOf(name, next);
      if (code !== 'VALUE' || data === undefined || index === -1 || !isCas(cas)) throw unexpected(line);
      next = index + 1;
      items.set(name, { value: data, cas });
      return undefined;
    },
  };
}

function tokenIn(items: ReadonlyMap<string, Present>, { fence }: ItemNames): bigint {
  const token = items.get(fence)?.value.trimEnd() ?? '';
  if (!/^\d{1,20}$/u.test(token)) throw refusal('SERVER_ERROR the counter of fencing tokens is none');
  return BigInt(token);
}
