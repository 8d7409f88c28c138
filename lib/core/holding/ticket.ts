import { LockConfigurationError } from '../contract/errors.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { assertNumber } from '../kit/option-checks.js';
import { assertCanAdopt } from '../leasing/can-adopt.js';
import { MAX_TRANSFERS } from '../options/hand-off-options.js';
import { MAX_TTL_MS, MIN_TTL_MS } from '../options/lock-options.js';
import type { Hold } from './hold.js';
import { readSignedLock, type SignedLock, signLock } from './signed-lock.js';

/** Returns the text by which another process can adopt the lease of `hold`. @throws LockConfigurationError */
export function createTicket(hold: Hold, withinMs: number): string {
  const { key, fencingToken, handOffCount, watchdog, listener } = hold;
  const { backend } = listener.service;
  assertCanAdopt(backend.store, key);
  assertAdoptionTime(withinMs, backend.store);
  const refusalReason = explainTransferRefusal(hold);
  if (refusalReason !== undefined)
    throw new LockConfigurationError(`this lock cannot be transferred: ${refusalReason}`, 'transfer', key);
  if (handOffCount >= MAX_TRANSFERS)
    throw new LockConfigurationError(`the lease was transferred too often: ${handOffCount} times`, 'transfer', key);
  return signLock('ticket1', { backend: backend.name, key, fencingToken, owner: watchdog.lease.owner });
}

/** @throws LockConfigurationError when the text is no ticket, or one of another backend or namespace */
export function readTicket(text: unknown, backendName: string, keyPrefix: string): SignedLock {
  const ticket = readSignedLock('ticket1', text);
  if (!ticket) throw new LockConfigurationError('the text is no ticket that LockHandle.transfer returned', 'ticket');
  const { backend, key } = ticket;
  if (backend !== backendName)
    throw new LockConfigurationError(`the ticket is for ${backend}, not for ${backendName}`, 'ticket', key);
  if (!key.startsWith(keyPrefix))
    throw new LockConfigurationError(`the ticket is for a key outside of the namespace ${keyPrefix}`, 'ticket', key);
  return ticket;
}

function explainTransferRefusal(hold: Hold): string | undefined {
  if (hold.isShared) return 'callers of a process may share the lease of a shared lock';
  if (hold.options.minHoldMs > 0) return 'minHoldMs keeps its key closed here, and a transfer would open it early';
  return hold.isReentered ? 'an outer call of this call tree has it, too: transfer it there' : undefined;
}

function assertAdoptionTime(withinMs: number, { traits }: Pick<LeaseStore, 'traits'>): void {
  const { minMs, maxMs } = traits?.ttlLimits ?? { minMs: MIN_TTL_MS, maxMs: MAX_TTL_MS };
  assertNumber('withinMs', withinMs, minMs, maxMs);
}
