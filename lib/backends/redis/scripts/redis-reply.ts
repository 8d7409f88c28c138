/** @throws when it is none: the words of an unknown server are no answer */
export function asList(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Error('the server gave an answer of an unexpected kind');
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
