import {
  type AddResult,
  counterExptime,
  type MemcachedDialect,
  type MemcachedLease,
  type StoredItem,
} from './dialect.js';
import type { ItemNames } from './item-names.js';
import type { MemcachedConnection } from './transport/connection.js';
import { unexpectedReplyError } from './error.js';
import { addCommand, replaceCommand } from './store-commands.js';
import { type Command, refusalError } from './transport/pipeline.js';
import type { ReplyPart } from './transport/reply-parser.js';

interface MetaReply {
  readonly code: string;
  readonly flags: ReadonlyMap<string, string>;
  readonly data: string | undefined;
}

/**
 * Meta commands: https://github.com/memcached/memcached/blob/master/doc/protocol.txt. The reply to a meta command
 * repeats the number of its request. Items are stored by classic commands, whose replies repeat no number. A lease is
 * therefore granted only when the reply to the meta command `mg` contains its item.
 */
export class MetaDialect implements MemcachedDialect {
  #requestCount = 0;

  constructor(private readonly connection: Pick<MemcachedConnection, 'exchange'>) {}

  async acquireLease(
    { names, value, exptime }: MemcachedLease,
    firstToken: bigint,
  ): ReturnType<MemcachedDialect['acquireLease']> {
    const [isAdded, token, item] = await this.connection.exchange(
      addCommand(names.lease, value, exptime),
      this.#incrementCommand(names.counter, firstToken),
      this.#mgCommand(names.lease),
    );
    return { isAdded, token, item };
  }

  async incrementCounter({ counter }: ItemNames, firstToken: bigint): Promise<bigint> {
    const [token] = await this.connection.exchange(this.#incrementCommand(counter, firstToken));
    return token;
  }

  async replaceAndGetItem({ names, value, exptime }: MemcachedLease, cas: string): Promise<StoredItem | null> {
    const [, item] = await this.connection.exchange(
      replaceCommand(names.lease, value, exptime, cas),
      this.#mgCommand(names.lease),
    );
    return item;
  }

  async getItem(name: string): Promise<StoredItem | null> {
    const [item] = await this.connection.exchange(this.#mgCommand(name));
    return item;
  }

  async deleteItem(name: string, cas: string): Promise<boolean> {
    const [isDeleted] = await this.connection.exchange(
      this.#numberedCommand(`md ${name} C${cas}`, ({ code }) => parseDeletionCode(code)),
    );
    return isDeleted;
  }

  async addItem(name: string, value: string, exptime: number): Promise<AddResult> {
    const [isAdded, item] = await this.connection.exchange(addCommand(name, value, exptime), this.#mgCommand(name));
    return { isAdded, item };
  }

  #mgCommand(name: string): Command<StoredItem | null> {
    return this.#numberedCommand(`mg ${name} c t v`, ({ code, flags, data }) => {
      if (code === 'EN') return null;
      const [cas, remainingSeconds] = [flags.get('c'), flags.get('t')];
      if (code !== 'VA' || data === undefined || !isCasValue(cas) || !/^-?\d+$/u.test(remainingSeconds ?? ''))
        return undefined;
      return { value: data, cas, remainingS: remainingSeconds === '-1' ? Infinity : Number(remainingSeconds) };
    });
  }

  #incrementCommand(counter: string, firstToken: bigint): Command<bigint> {
    const request = `ma ${counter} N${counterExptime(firstToken)} J${firstToken} D1 v`;
    return this.#numberedCommand(request, ({ code, data }) =>
      code === 'VA' && data !== undefined && /^\d{1,20}$/u.test(data) ? BigInt(data) : undefined,
    );
  }

  /** @param interpret returns `undefined` for a reply that does not fit the request */
  #numberedCommand<Result>(request: string, interpret: (reply: MetaReply) => Result | undefined): Command<Result> {
    this.#requestCount += 1;
    const requestNumber = this.#requestCount.toString(36);
    return {
      text: `${request} O${requestNumber}\r\n`,
      read: (part) => {
        const reply = parseReply(part);
        // Old versions of memcached report a missing item without the number. That reply never grants a lease.
        const isReplyToRequest =
          reply.flags.get('O') === requestNumber || (reply.code === 'EN' && reply.flags.size === 0);
        const result = isReplyToRequest ? interpret(reply) : undefined;
        if (result === undefined) throw unexpectedReplyError(part.line);
        return result;
      },
    };
  }
}

/** Reply for a counter that an operator has overwritten with text. The connection remains usable. */
const NOT_A_NUMBER_REPLY = 'CLIENT_ERROR cannot increment or decrement non-numeric value';

function parseReply({ line, data }: ReplyPart): MetaReply {
  if (line === NOT_A_NUMBER_REPLY) throw refusalError(line);
  const [code = '', ...rest] = line.split(' ');
  const flags = code === 'VA' ? rest.slice(1) : rest;
  return { code, data, flags: new Map(flags.filter(Boolean).map((flag) => [flag.slice(0, 1), flag.slice(1)])) };
}

/** Returns `undefined` for a reply to another command. `EX`: another item is stored. `NF`: no item is stored. */
function parseDeletionCode(code: string): boolean | undefined {
  if (code === 'HD') return true;
  return code === 'EX' || code === 'NF' ? false : undefined;
}

/** Tests a text, because a cas unique has too many bits for a number. A server without cas uniques answers 0. */
export function isCasValue(cas: string | undefined): cas is string {
  return cas !== undefined && /^[1-9]\d{0,19}$/u.test(cas);
}
