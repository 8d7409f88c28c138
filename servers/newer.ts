import { join } from 'node:path';
import { env } from 'node:process';

const UNPACKED_DIRECTORY = env['LOCK_NEWER_SERVERS'];

/**
 * Returns whether to start the servers that scripts/newer-servers.sh has unpacked into the directory
 * LOCK_NEWER_SERVERS.
 */
export function isUnpacked(): boolean {
  return UNPACKED_DIRECTORY !== undefined;
}

/** Returns the directory that has the files of a server as the root of the system would have them. */
export function systemRoot(server: string): string {
  return UNPACKED_DIRECTORY === undefined ? '/' : join(UNPACKED_DIRECTORY, server);
}
