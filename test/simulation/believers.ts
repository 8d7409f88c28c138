import type { LockHandle } from 'nestjs-distributed-lock/core';

interface Believer {
  readonly handle: LockHandle;
  readonly process: string;
  believes: boolean;
}

/** Who believes to hold what, and whether that can be true. */
export class Believers {
  readonly #believers = new Map<string, Set<Believer>>();
  readonly #newest = new Map<string, bigint>();

  constructor(private readonly violate: (what: string) => void) {}

  /** A handle that a caller has just got. */
  add(handle: LockHandle, process: string): void {
    const { key, fencingToken } = handle;
    const present = this.#believers.get(key) ?? new Set();
    this.#believers.set(key, present);
    const reentered = [...present].some((other) => other.handle.fencingToken === fencingToken);
    const newest = this.#newest.get(key) ?? 0n;
    if (handle.isHeld && !reentered && fencingToken <= newest) {
      this.violate(`${key}: token ${fencingToken} of ${process} comes after ${newest}`);
    }
    if (fencingToken > newest) this.#newest.set(key, fencingToken);
    present.add({ handle, process, believes: handle.isHeld });
  }

  /** A handle that its caller gives back. */
  remove(handle: LockHandle): void {
    const present = this.#believers.get(handle.key);
    for (const believer of present ?? []) if (believer.handle === handle) present?.delete(believer);
  }

  /** At most one acquisition of a key is believed in, and belief that is gone does not come back. */
  check(): void {
    for (const [key, present] of this.#believers) {
      const inside = new Map<bigint, string>();
      for (const believer of present) {
        const believes = believer.handle.isHeld;
        if (believes && !believer.believes) this.violate(`${key}: ${believer.process} believes again`);
        believer.believes = believes;
        if (believes) inside.set(believer.handle.fencingToken, believer.process);
      }
      if (inside.size > 1) {
        const who = [...inside].map(([token, process]) => `${process} with ${token}`).join(' and ');
        this.violate(`${key}: believed by ${who}`);
      }
    }
  }
}
