import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

/** As `node:tls` takes them; `true` stands for its defaults. */
export type RedisTls = boolean | ConnectionOptions;

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}

/**
 * The same, with the name by which a server knows which of its certificates to show. Neither Node nor ioredis tells it, and
 * addresses are no names: https://www.rfc-editor.org/rfc/rfc6066#section-3
 */
export function tlsTo(host: string, tls: ConnectionOptions): ConnectionOptions {
  return isIP(host.replace(/^\[|\]$/gu, '')) === 0 ? { servername: host, ...tls } : tls;
}
