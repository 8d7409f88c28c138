import type { Listener } from '../conformance/backend-harness.js';
import type { Contract } from '../conformance/contract.js';
import { Holder } from '../support/harness-holder.js';
import type { SpawnOptions } from '../support/processes.js';

/** A process of its own on the backend under test. */
export function startHolder({ harness }: Contract, env: SpawnOptions['env'] = {}, through?: Listener): Promise<Holder> {
  if (!harness.connection) throw new Error('no other process can connect to this backend');
  return Holder.start(harness.connection(through), { env });
}
