import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/**
 * In memory where there is such a place, for the data of servers that write to disk before they answer: beside others a disk
 * may take a third of a second, which a test that waits for less takes for a dead server. What is killed loses nothing there.
 */
export const MEMORY_DIR = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
