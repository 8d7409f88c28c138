/** @throws when it is none, so that what an unknown server says is never taken for an answer */
export function asList(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw unexpected();
  return reply;
}

/** @throws when it is not a text of so many digits */
export function asDigits(reply: unknown, count: number): string {
  if (typeof reply !== 'string' || reply.length !== count) throw unexpected();
  return reply;
}

/** The server's `TIME` in microseconds: below 2^52, where tokens end, until the year 2112. */
export function microseconds(time: unknown): bigint {
  const [seconds, micros] = asList(time);
  return BigInt(String(seconds)) * 1_000_000n + BigInt(String(micros));
}

/** Whether the first of the replies is 1, as scripts say yes. */
export function isOne([reply]: readonly unknown[]): boolean {
  return Number(reply) === 1;
}

function unexpected(): Error {
  return new Error('the server gave an answer of an unexpected kind');
}
