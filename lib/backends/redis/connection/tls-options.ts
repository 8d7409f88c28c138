import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

/** As `node:tls` takes them; `true` stands for its defaults. */
export type RedisTls = boolean | ConnectionOptions;

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}

/**
 * Adds the name by which a server chooses its certificate. Neither Node nor ioredis does, and addresses are no names: https://www.rfc-editor.org/rfc/rfc6066#section-3
 */
export function tlsTo(host: string, tls: ConnectionOptions): ConnectionOptions {
  return isIP(host.replace(/^\[|\]$/gu, '')) === 0 ? { servername: host, ...tls } : tls;
}
