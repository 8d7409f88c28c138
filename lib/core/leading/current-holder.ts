import { LockConfigurationError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import { outside } from '../holding/call-tree.js';
import type { HoldRegistry } from '../holding/hold-registry.js';

/** @throws LockConfigurationError when the backend cannot tell who has a key */
export function assertNamesHolder({ settings: { backend } }: HoldRegistry, key: string): void {
  if (backend.store.whoHolds) return;
  const why = `${backend.name} cannot tell who holds a key, and so who leads: isLeader tells of this process`;
  throw new LockConfigurationError(why, 'backend', key);
}

/** Who has `key`, by one reading. @throws LockConfigurationError; LockBackendError, which observers hear of */
export async function currentHolder(holds: HoldRegistry, key: string): Promise<Holder | undefined> {
  assertNamesHolder(holds, key);
  const { backend, observers, stopped } = holds.settings;
  stopped.throwIfAborted();
  try {
    return await outside(() => backend.store.whoHolds?.(key));
  } catch (error) {
    throw observers.notifyFailure(key, 'read the holder of', error);
  }
}
