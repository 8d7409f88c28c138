import { MemcachedError, unexpectedReplyError } from '../error.js';

/** One line of a reply, without its line end, and the data block that the line announced. */
export interface ReplyPart {
  readonly line: string;
  readonly data?: string;
}

/** Maximum length of a line. No line of the protocol is as long: a key has 250 bytes, a statistic fewer. */
const MAX_LINE_LENGTH = 2_048;
/** Maximum number of bytes in a data block: a server's default limit of an item. */
const MAX_BLOCK_BYTES = 1_048_576;

const LF = 0x0a;
const EMPTY = Buffer.alloc(0);

/**
 * Splits the bytes of a server into lines and data blocks, however the network has split them. Knows no commands, does
 * no I/O. https://github.com/memcached/memcached/blob/master/doc/protocol.txt
 */
export class ReplyParser {
  #unparsed: Buffer = EMPTY;
  #pendingLine: string | undefined;

  /** Yields the parts that `chunk` completes. @throws MemcachedError for what no memcached server would send */
  *push(chunk: Buffer): Generator<ReplyPart, void, undefined> {
    this.#unparsed = this.#unparsed.length === 0 ? chunk : Buffer.concat([this.#unparsed, chunk]);
    for (let part = this.#takePart(); part !== undefined; part = this.#takePart()) yield part;
  }

  #takePart(): ReplyPart | undefined {
    const line = (this.#pendingLine ??= this.#takeLine());
    if (line === undefined) return undefined;
    const size = announcedBytes(line);
    if (size === undefined) {
      this.#pendingLine = undefined;
      return { line };
    }
    if (this.#unparsed.length < size + 2) return undefined;
    const data = this.#unparsed.toString('utf8', 0, size);
    if (this.#unparsed.toString('latin1', size, size + 2) !== '\r\n') {
      throw new MemcachedError('protocol', `a block that does not end after ${size} bytes`);
    }
    this.#unparsed = this.#unparsed.subarray(size + 2);
    this.#pendingLine = undefined;
    return { line, data };
  }

  #takeLine(): string | undefined {
    const end = this.#unparsed.indexOf(LF);
    const text = this.#unparsed.toString(
      'latin1',
      0,
      Math.min(end === -1 ? this.#unparsed.length : end, MAX_LINE_LENGTH),
    );
    if (!/^[ -~]*\r?$/u.test(text) || text.length === MAX_LINE_LENGTH) throw unexpectedReplyError(text);
    if (end === -1) return undefined;
    if (!text.endsWith('\r')) throw unexpectedReplyError(text);
    this.#unparsed = this.#unparsed.subarray(end + 1);
    return text.slice(0, -1);
  }
}

/**
 * Returns the size of the data block that a line announces: `VA <size> <flags>*` or `VALUE <key> <flags> <size>
 * [<cas>]`.
 */
function announcedBytes(line: string): number | undefined {
  if (!line.startsWith('VA')) return undefined;
  const size = /^(?:VA|VALUE \S+ \d+) (?<size>\d{1,7})(?: |$)/u.exec(line)?.groups?.['size'];
  if (size === undefined || Number(size) > MAX_BLOCK_BYTES) throw unexpectedReplyError(line);
  return Number(size);
}
