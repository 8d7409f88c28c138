import { MemcachedError, unexpectedReplyError } from '../error.js';

/** One line of a reply, without its line end, and the data block that the line announced. */
export interface ReplyPart {
  readonly line: string;
  readonly data?: string;
}

/** Length that no line of the protocol reaches: a key has at most 250 bytes, and a statistic has fewer. */
const MAX_LINE_LENGTH = 2_048;
/** Maximum size of an item by a server's default settings. */
const MAX_BLOCK_BYTES = 1_048_576;

const LF = 0x0a;
const EMPTY_BUFFER = Buffer.alloc(0);

/**
 * Splits the bytes of a server into lines and data blocks, however the network has split them.
 * https://github.com/memcached/memcached/blob/master/doc/protocol.txt
 */
export class ReplyParser {
  #unparsed: Buffer = EMPTY_BUFFER;
  #pendingLine: string | undefined;

  /** @throws MemcachedError for what no memcached server would send */
  *parse(chunk: Buffer): Generator<ReplyPart, void, undefined> {
    this.#unparsed = this.#unparsed.length === 0 ? chunk : Buffer.concat([this.#unparsed, chunk]);
    for (let part = this.#takePart(); part !== undefined; part = this.#takePart()) yield part;
  }

  #takePart(): ReplyPart | undefined {
    const line = (this.#pendingLine ??= this.#takeLine());
    if (line === undefined) return undefined;
    const size = parseBlockSize(line);
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
    const lineEnd = this.#unparsed.indexOf(LF);
    const text = this.#unparsed.toString(
      'latin1',
      0,
      Math.min(lineEnd === -1 ? this.#unparsed.length : lineEnd, MAX_LINE_LENGTH),
    );
    if (!/^[ -~]*\r?$/u.test(text) || text.length === MAX_LINE_LENGTH) throw unexpectedReplyError(text);
    if (lineEnd === -1) return undefined;
    if (!text.endsWith('\r')) throw unexpectedReplyError(text);
    this.#unparsed = this.#unparsed.subarray(lineEnd + 1);
    return text.slice(0, -1);
  }
}

/**
 * Reads `VA <size> <flags>*` or `VALUE <key> <flags> <size> [<cas>]`. Returns `undefined` for a line without a data
 * block.
 */
function parseBlockSize(line: string): number | undefined {
  if (!line.startsWith('VA')) return undefined;
  const size = /^(?:VA|VALUE \S+ \d+) (?<size>\d{1,7})(?: |$)/u.exec(line)?.groups?.['size'];
  if (size === undefined || Number(size) > MAX_BLOCK_BYTES) throw unexpectedReplyError(line);
  return Number(size);
}
