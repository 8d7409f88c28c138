/** The first command of a stream, if all of it is there. */
export function readCommand(
  stream: Buffer,
): { readonly parts: readonly Buffer[]; readonly length: number } | undefined {
  let at = 0;
  const line = (): string | undefined => {
    const end = stream.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const text = stream.toString('latin1', at, end);
    at = end + 2;
    return text;
  };
  const count = Number(line()?.slice(1));
  if (!(count > 0)) return undefined;
  const parts: Buffer[] = [];
  while (parts.length < count) {
    const length = Number(line()?.slice(1));
    if (!(at + length + 2 <= stream.length)) return undefined;
    parts.push(stream.subarray(at, at + length));
    at += length + 2;
  }
  return { parts, length: at };
}

export function packCommand(parts: readonly Buffer[]): Buffer {
  const heads = parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]);
  return Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...heads]);
}

/** Packs a reply as ioredis gives it. */
export function packReply(reply: unknown): string {
  if (reply === null || reply === undefined) return '$-1\r\n';
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (Array.isArray(reply)) return `*${reply.length}\r\n${reply.map(packReply).join('')}`;
  if (typeof reply !== 'string') throw new TypeError('ioredis gives no such reply');
  return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
}
