import { MemcachedError, unexpected } from '../error.js';

/** One line of a reply, without its line end, and the block of data that it announced. */
export interface ReplyPart {
  readonly line: string;
  readonly data?: string;
}

/** Longer than any line of the protocol: a key has 250 bytes, a statistic less. */
const LONGEST_LINE = 2_048;
/** A server stores no more by default. */
const LARGEST_BLOCK = 1_048_576;

const LF = 0x0a;
const EMPTY = Buffer.alloc(0);

/**
 * Cuts what a server sends into lines and blocks, wherever the network has cut it. Knows no commands, does no I/O.
 * https://github.com/memcached/memcached/blob/master/doc/protocol.txt
 */
export class ReplyParser {
  #rest: Buffer = EMPTY;
  #line: string | undefined;

  /** The parts that `chunk` completes. @throws MemcachedError for what no server of this kind would send */
  *push(chunk: Buffer): Generator<ReplyPart, void, undefined> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let part = this.#take(); part !== undefined; part = this.#take()) yield part;
  }

  #take(): ReplyPart | undefined {
    const line = (this.#line ??= this.#takeLine());
    if (line === undefined) return undefined;
    const size = announcedSize(line);
    if (size === undefined) {
      this.#line = undefined;
      return { line };
    }
    if (this.#rest.length < size + 2) return undefined;
    const data = this.#rest.toString('utf8', 0, size);
    if (this.#rest.toString('latin1', size, size + 2) !== '\r\n') {
      throw new MemcachedError('protocol', `a block that does not end after ${size} bytes`);
    }
    this.#rest = this.#rest.subarray(size + 2);
    this.#line = undefined;
    return { line, data };
  }

  #takeLine(): string | undefined {
    const end = this.#rest.indexOf(LF);
    const text = this.#rest.toString('latin1', 0, Math.min(end === -1 ? this.#rest.length : end, LONGEST_LINE));
    if (!/^[ -~]*\r?$/u.test(text) || text.length === LONGEST_LINE) throw unexpected(text);
    if (end === -1) return undefined;
    if (!text.endsWith('\r')) throw unexpected(text);
    this.#rest = this.#rest.subarray(end + 1);
    return text.slice(0, -1);
  }
}

/** `VA <size> <flags>*` and `VALUE <key> <flags> <size> [<cas>]` come with data. */
function announcedSize(line: string): number | undefined {
  if (!line.startsWith('VA')) return undefined;
  const size = /^(?:VA|VALUE \S+ \d+) (?<size>\d{1,7})(?: |$)/u.exec(line)?.groups?.['size'];
  if (size === undefined || Number(size) > LARGEST_BLOCK) throw unexpected(line);
  return Number(size);
}
