import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Core from 'nestjs-distributed-lock/core';

/** A core with one mistake in it: what is replaced in a file, and by what. */
export interface Mutant {
  readonly mistake: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Of `from` and `to`, by the file and the mistake. */
export function mutantsOf(
  files: Readonly<Record<string, Readonly<Record<string, readonly [from: string, to: string]>>>>,
): readonly Mutant[] {
  return Object.entries(files).flatMap(([file, mistakes]) =>
    Object.entries(mistakes).map(([mistake, [from, to]]) => ({ mistake, file, from, to })),
  );
}

export const MUTANTS = mutantsOf({
  'leasing/trust.ts': {
    'trusts a lease until the end of its TTL': ['const TRUSTED_SHARE = 0.99;', 'const TRUSTED_SHARE = 1;'],
  },
  'holding/watchdog.ts': {
    'believes in a renewal that is answered after the end of the lease': [
      "if (!this.isTrusted) return this.#endAsLost('expired');",
      '',
    ],
    'tells of a loss in doubt when the next renewal is due': [
      "this.#state = 'jeopardy';\n    this.#scheduleEndOfTrust();",
      "this.#state = 'jeopardy';",
    ],
  },
  'holding/hold.ts': {
    'hands on a lease in jeopardy': ['return !isInJeopardy && ', 'return '],
    'does not abort the signal of a lock that is lost': ['this.#lossController?.abort(this.createLossError());', ''],
  },
  'holding/holds.ts': {
    'keeps no lock-delay after a loss': ['(options.lockDelayMs > 0 ? ', '(options.lockDelayMs < 0 ? '],
    'begins the next turn before the release in a store that keeps no order': [
      ' && store.traits?.keepsOrder === true',
      '',
    ],
    'hands a lease on within its shortest hold': [' && options.minHoldMs === 0', ''],
  },
  'turns/hand-off-limits.ts': {
    'hands a lease on once more than it may': ['count >= maxHandOffs', 'count > maxHandOffs'],
  },
  'leasing/clean-ups.ts': {
    'cleans nothing up': ['await this.store.release(key, owner);', ''],
  },
  'acquiring/acquisition.ts': {
    'leaves a queue entry behind that a caller inherits who has just given up': [
      'if (this.inheritsQueueEntry && !this.handOffQueueEntry()) backend.leaveQueue(this.key, this);',
      '',
    ],
  },
  'holding/lease-releases.ts': {
    'gives a key back at once that it keeps closed': [
      'void this.#releaseAt(closedUntil, hold);',
      'void this.release(hold);',
    ],
  },
  'options/option-resolver.ts': {
    'asks for no longer lease than the TTL': ['Math.max(lockDelayMs, minHoldMs - ttlMs)', 'lockDelayMs'],
  },
});

const FOLDER = join(import.meta.dirname, '../../.test-output/mutants');
const CORE = join(import.meta.dirname, '../../lib/core');

/** A copy of the core with the mistake. @throws when the core has changed, and the mistake has to be made elsewhere */
export async function coreOf({ file, from, to }: Mutant, name: string): Promise<typeof Core> {
  const core = join(FOLDER, name, 'core');
  await rm(core, { recursive: true, force: true });
  await mkdir(core, { recursive: true });
  await cp(CORE, core, { recursive: true });
  const source = await readFile(join(core, file), 'utf8');
  if (source.split(from).length !== 2) throw new Error(`${file} must have this once: ${from}`);
  await writeFile(join(core, file), source.replace(from, to));
  return (await import(pathToFileURL(join(core, 'index.ts')).href)) as typeof Core;
}
