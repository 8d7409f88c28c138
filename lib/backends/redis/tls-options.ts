import type { ConnectionOptions } from 'node:tls';

/** As `node:tls` takes them; `true` stands for its defaults. */
export type RedisTls = boolean | ConnectionOptions;

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}
