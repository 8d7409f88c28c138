import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Core from 'nestjs-distributed-lock/core';

/** A core with one mistake in it. */
export interface Mutant {
  readonly mistake: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    mistake: 'trusts a lease until the end of its TTL',
    file: 'leasing/trust.ts',
    from: 'const TRUSTED_SHARE = 0.99;',
    to: 'const TRUSTED_SHARE = 1;',
  },
  {
    mistake: 'believes in a renewal that is answered after the end of the lease',
    file: 'holding/watchdog.ts',
    from: "if (!this.isTrusted) return this.#endAsLost('expired');",
    to: '',
  },
  {
    mistake: 'hands on a lease in jeopardy',
    file: 'holding/hold.ts',
    from: 'return !isInJeopardy && ',
    to: 'return ',
  },
  {
    mistake: 'tells of a loss in doubt when the next renewal is due',
    file: 'holding/watchdog.ts',
    from: "this.#state = 'jeopardy';\n    this.#scheduleEndOfTrust();",
    to: "this.#state = 'jeopardy';",
  },
  {
    mistake: 'does not abort the signal of a lock that is lost',
    file: 'holding/hold.ts',
    from: 'this.#lossController?.abort(this.createLossError());',
    to: '',
  },
  {
    mistake: 'keeps no lock-delay after a loss',
    file: 'holding/holds.ts',
    from: '(options.lockDelayMs > 0 ? ',
    to: '(options.lockDelayMs < 0 ? ',
  },
  {
    mistake: 'hands a lease on once more than it may',
    file: 'turns/hand-off-limits.ts',
    from: 'count >= maxHandOffs',
    to: 'count > maxHandOffs',
  },
  {
    mistake: 'begins the next turn before the release in a store that keeps no order',
    file: 'holding/holds.ts',
    from: ' && store.traits?.keepsOrder === true',
    to: '',
  },
  {
    mistake: 'cleans nothing up',
    file: 'leasing/clean-ups.ts',
    from: 'await this.store.release(key, owner);',
    to: '',
  },
  {
    mistake: 'leaves a queue entry behind that a caller inherits who has just given up',
    file: 'acquiring/acquisition.ts',
    from: 'if (this.inheritsQueueEntry && !this.handOffQueueEntry()) backend.leaveQueue(this.key, this);',
    to: '',
  },
  {
    mistake: 'gives a key back at once that it keeps closed',
    file: 'holding/lease-releases.ts',
    from: 'void this.#releaseAt(closedUntil, hold);',
    to: 'void this.release(hold);',
  },
  {
    mistake: 'hands a lease on within its shortest hold',
    file: 'holding/holds.ts',
    from: ' && options.minHoldMs === 0',
    to: '',
  },
  {
    mistake: 'asks for no longer lease than the TTL',
    file: 'options/option-resolver.ts',
    from: 'Math.max(lockDelayMs, minHoldMs - ttlMs)',
    to: 'lockDelayMs',
  },
];

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
