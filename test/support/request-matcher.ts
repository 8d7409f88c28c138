/** Bytes of earlier chunks that are kept, for a request that arrives in pieces. */
const TAIL_LENGTH = 1_024;

/**
 * Finds a pattern in a stream of requests, also across the border of two chunks, but never in what was there before it began
 * to look. Bytes are read as latin1; a string matches as the UTF-8 bytes that it has on the wire.
 */
export class RequestMatcher {
  readonly #pattern: RegExp;
  #tail = '';

  constructor(pattern: string | RegExp) {
    this.#pattern =
      typeof pattern === 'string'
        ? new RegExp(escape(Buffer.from(pattern).toString('latin1')))
        : new RegExp(pattern.source, pattern.flags.replaceAll(/[gy]/g, ''));
  }

  matches(chunk: Buffer): boolean {
    const text = this.#tail + chunk.toString('latin1');
    this.#tail = text.slice(-TAIL_LENGTH);
    return this.#pattern.test(text);
  }
}

function escape(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
}
