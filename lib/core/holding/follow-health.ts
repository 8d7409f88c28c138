import type { BackendHealth } from '../contract/health.js';
import { runDetached } from '../time/detached.js';
import { runOutsideLocks } from './call-tree.js';
import type { Hold } from './hold.js';
import type { ServiceContext } from './service-context.js';

/** Tells observers and holds of changes of the backend's health. Returns what ends that. */
export function followHealth({ backend, observers }: ServiceContext, holds: Iterable<Hold>): (() => void) | undefined {
  let told: BackendHealth['status'] | undefined;
  const onChange = (health: BackendHealth): void => {
    // A connection may come and go while no request over it is carried out.
    if (health.status !== told || health.nodes) observers.notify('healthChanged', () => health);
    told = health.status;
    doubtOrRenew(holds, health);
  };
  return runOutsideLocks(() => backend.health.onChange((health) => runDetached(() => onChange(health))));
}

function doubtOrRenew(holds: Iterable<Hold>, { status, detail }: BackendHealth): void {
  for (const { watchdog, options } of holds) {
    // A hold without renewals sends no request whose answer could end the doubt.
    if (!options.watchdog) continue;
    if (status === 'down') watchdog.suspect(new Error(detail ?? 'the connection is down'));
    else if (status === 'up') watchdog.renewNow();
  }
}
