import { type Addition, FENCE_TTL_S, type MemcachedDialect, type MemcachedLease, type Present } from './dialect.js';
import type { ItemNames } from './item-names.js';
import type { MemcachedConnection } from './transport/connection.js';
import { unexpected } from './error.js';
import { type Command, refusal } from './transport/pipeline.js';
import type { ReplyPart } from './transport/reply-parser.js';

interface MetaReply {
  readonly code: string;
  readonly flags: ReadonlyMap<string, string>;
  readonly data: string | undefined;
}

/**
 * The meta commands: https://github.com/memcached/memcached/blob/master/doc/protocol.txt. Every answer tells the cas id
 * and the remaining time, and repeats the number of its question.
 */
export class MetaDialect implements MemcachedDialect {
  #questions = 0;

  constructor(private readonly connection: Pick<MemcachedConnection, 'exchange'>) {}

  async acquire(
    { names, value, expiresAt }: MemcachedLease,
    firstToken: bigint,
  ): ReturnType<MemcachedDialect['acquire']> {
    const [added, token, present] = await this.connection.exchange(
      this.#set(names.lease, value, `ME T${expiresAt}`),
      this.#count(names.fence, firstToken),
      this.#get(names.lease),
    );
    return { added, token, present };
  }

  async count({ fence }: ItemNames, firstToken: bigint): Promise<bigint> {
    const [token] = await this.connection.exchange(this.#count(fence, firstToken));
    return token;
  }

  async renew({ names, value, expiresAt }: MemcachedLease, cas: string): Promise<Present | null> {
    const [, present] = await this.connection.exchange(
      this.#set(names.lease, value, `C${cas} T${expiresAt}`),
      this.#get(names.lease),
    );
    return present;
  }

  async look(name: string): Promise<Present | null> {
    const [present] = await this.connection.exchange(this.#get(name));
    return present;
  }

  async remove(name: string, cas: string): Promise<boolean> {
    const [removed] = await this.connection.exchange(this.#ask(`md ${name} C${cas}`, ({ code }) => done(code)));
    return removed;
  }

  async add(name: string, value: string, expiresAt: number): Promise<Addition> {
    const [added, present] = await this.connection.exchange(
      this.#set(name, value, `ME T${expiresAt}`),
      this.#get(name),
    );
    return { added, present };
  }

  #set(name: string, value: string, flags: string): Command<boolean> {
    return this.#ask(`ms ${name} ${Buffer.byteLength(value)} ${flags}`, ({ code }) => done(code), value);
  }

  #get(name: string): Command<Present | null> {
    return this.#ask(`mg ${name} c t v`, ({ code, flags, data }) => {
      if (code === 'EN') return null;
      const [cas, remaining] = [flags.get('c'), flags.get('t')];
      if (code !== 'VA' || data === undefined || !isCas(cas) || !/^-?\d+$/u.test(remaining ?? '')) return undefined;
      return { value: data, cas, remainingS: remaining === '-1' ? Infinity : Number(remaining) };
    });
  }

  #count(fence: string, firstToken: bigint): Command<bigint> {
    return this.#ask(`ma ${fence} N${FENCE_TTL_S} J${firstToken} D1 v`, ({ code, data }) =>
      code === 'VA' && data !== undefined && /^\d{1,20}$/u.test(data) ? BigInt(data) : undefined,
    );
  }

  /** `understand` returns `undefined` for what is no answer to this question. */
  #ask<Result>(request: string, understand: (reply: MetaReply) => Result | undefined, value?: string): Command<Result> {
    this.#questions += 1;
    const number = this.#questions.toString(36);
    return {
      text: `${request} O${number}\r\n${value === undefined ? '' : `${value}\r\n`}`,
      read: (part) => {
        const reply = parse(part);
        // In earlier versions a miss did not repeat it. A miss grants nothing.
        const ours = reply.flags.get('O') === number || (reply.code === 'EN' && reply.flags.size === 0);
        const result = ours ? understand(reply) : undefined;
        if (result === undefined) throw unexpected(part.line);
        return result;
      },
    };
  }
}

/** The answer when an operator has written text into a counter. The connection stays good. */
const NOT_A_NUMBER = 'CLIENT_ERROR cannot increment or decrement non-numeric value';

function parse({ line, data }: ReplyPart): MetaReply {
  if (line === NOT_A_NUMBER) throw refusal(line);
  const [code = '', ...rest] = line.split(' ');
  const flags = code === 'VA' ? rest.slice(1) : rest;
  return { code, data, flags: new Map(flags.filter(Boolean).map((flag) => [flag.slice(0, 1), flag.slice(1)])) };
}

/** `NS` and `EX`: something else is there. `NF`: nothing is. */
function done(code: string): boolean | undefined {
  if (code === 'HD') return true;
  return ['NS', 'EX', 'NF'].includes(code) ? false : undefined;
}

/** As text, because a cas id has 64 bits. A server without cas ids answers 0. */
export function isCas(cas: string | undefined): cas is string {
  return cas !== undefined && /^[1-9]\d{0,19}$/u.test(cas);
}
