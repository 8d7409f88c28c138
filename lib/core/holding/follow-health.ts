import type { BackendHealth } from '../contract/health.js';
import { runWithoutContext } from '../time/without-context.js';
import { runOutsideLocks } from './call-tree.js';
import type { Hold } from './hold.js';
import type { ServiceContext } from './service-context.js';

/** Reports changes of the backend's health to observers and holds, until the returned function is called. */
export function followHealth({ backend, observers }: ServiceContext, holds: Iterable<Hold>): () => void {
  let lastStatus: BackendHealth['status'] | undefined;
  const handleChange = (health: BackendHealth): void => {
    // The status may be the same as before, for example after a brief loss of a connection. Holds react all the same.
    // Observers are called only for a new status, or if the health lists nodes.
    if (health.status !== lastStatus || health.nodes) observers.notify('healthChanged', () => health);
    lastStatus = health.status;
    putInJeopardyOrRenew(holds, health);
  };
  return runOutsideLocks(() => backend.health.onChange((health) => runWithoutContext(() => handleChange(health))));
}

function putInJeopardyOrRenew(holds: Iterable<Hold>, { status, detail }: BackendHealth): void {
  for (const { watchdog, options } of holds) {
    // A hold without renewals stays out of jeopardy, because it sends no request that could end the jeopardy.
    if (!options.watchdog) continue;
    if (status === 'down') watchdog.putInJeopardy(new Error(detail ?? 'the connection is down'));
    else if (status === 'up') watchdog.renewNow();
  }
}
