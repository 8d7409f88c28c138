import { parseClaim, ownerSuffixOf, shareOf, shareProperty } from '../contract/claim.js';
import { isLockError, LockLostError } from '../contract/errors.js';
import type { Hold } from '../holding/hold.js';
import { createOwner } from '../holding/process-identity.js';
import type { SignedLock } from '../holding/signed-lock.js';
import { HAND_OFF_BITS } from '../options/hand-off-options.js';
import type { AcquireOptions, AdoptOptions, ResolvedOptions } from '../options/lock-options.js';
import { getUntrustedMs } from '../options/option-resolver.js';
import { Deadline } from '../time/deadline.js';
import { slotOf } from '../turns/slot.js';
import type { AcquisitionDependencies } from './acquisition.js';

/** Returns `options` with the claim of the former holder in place of any claim of their own. */
export function withClaimOf({ owner }: SignedLock, options: AdoptOptions): AcquireOptions {
  const { mode: _mode, limit: _limit, permits: _permits, ...otherOptions }: AcquireOptions = options;
  const share = shareOf(parseClaim(owner));
  if (share?.mode === 'permits') return { ...otherOptions, limit: share.limit, permits: share.permits };
  return { ...otherOptions, mode: share?.mode ?? 'exclusive' };
}

/**
 * Adopts the lease of a ticket, and asks again if the backend does not answer. The hold gets an extra turn, because
 * callers that have the other turns may be waiting for this lease to end.
 */
export async function adoptLease(
  ticket: SignedLock,
  options: ResolvedOptions,
  { service, turns, holds }: AcquisitionDependencies,
): Promise<Hold> {
  const { backend, clock, metadata, observers, pendingWork, stopSignal } = service;
  const { key } = ticket;
  const slot = slotOf(key, options);
  const untrustedMs = getUntrustedMs(options, backend.store.traits);
  const startedAt = clock.now();
  const transferredLease = { owner: ticket.owner, fencingToken: ticket.fencingToken >> HAND_OFF_BITS };
  const earlierHandOffs = Number(BigInt.asUintN(Number(HAND_OFF_BITS), ticket.fencingToken));
  const deadline = Deadline.after(options.waitMs, clock, startedAt);
  const request = { ttlMs: options.ttlMs + untrustedMs, untrustedMs, deadline, signal: options.signal, metadata };
  turns.takeExtraTurn(slot);
  pendingWork.begin();
  let hold: Hold;
  try {
    const owner = createOwner() + ownerSuffixOf(options);
    const lease = await backend.acquire(key, { ...request, owner, transferredLease });
    if (!lease) throw new LockLostError(key, 'transferred');
    hold = holds.beginAdoptedHold(key, options, lease, earlierHandOffs + 1);
  } catch (error) {
    turns.endExemptTurn(slot);
    if (error === options.signal?.reason || (isLockError(error) && !isLockError(error, 'LOCK_BACKEND'))) throw error;
    throw observers.notifyFailure(key, 'adopt', isLockError(error) ? error.cause : error);
  } finally {
    pendingWork.end();
  }
  const abortedSignal = [options.signal, stopSignal].find((signal) => signal?.aborted);
  if (abortedSignal) {
    await holds.releaseUndelivered(hold);
    throw abortedSignal.reason;
  }
  const { fencingToken, claim } = hold;
  const waitedMs = clock.now() - startedAt;
  observers.notify('acquired', () => ({ key, fencingToken, waitedMs, from: 'transfer', ...shareProperty(claim) }));
  return hold;
}
