import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { env } from 'node:process';

const SHARED_MEMORY = env['LOCK_SHARED_MEMORY'] ?? '/dev/shm';
/** Bytes that the servers of a few specs need at the same time. */
const ENOUGH_BYTES = 1_000_000_000;

/**
 * Place in memory, where there is one, for SQLite files and for the data of servers that write to disk before they answer.
 * Beside others a disk may take a second, which a test that waits for less takes for a dead server or a lost lease. What is
 * killed loses nothing there.
 */
export const MEMORY_DIR = hasRoom() ? SHARED_MEMORY : tmpdir();

function hasRoom(): boolean {
  if (!existsSync(SHARED_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  return bavail * bsize >= ENOUGH_BYTES;
}
