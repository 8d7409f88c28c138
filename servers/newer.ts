import { join } from 'node:path';
import { env } from 'node:process';

const NEWER = env['LOCK_NEWER_SERVERS'];

/** Whether servers are started that scripts/newer-servers.sh has unpacked into the directory LOCK_NEWER_SERVERS. */
export function isUnpacked(): boolean {
  return NEWER !== undefined;
}

/** Where the files of a server are, as seen from the root of the system. */
export function systemRoot(server: string): string {
  return NEWER === undefined ? '/' : join(NEWER, server);
}
