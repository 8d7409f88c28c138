import type { ReportedHealth } from '../../../core/index.js';

export async function reportServerAdvice(
  sendCommand: (...command: [string, string]) => Promise<unknown>,
  health: Pick<ReportedHealth, 'setAdvice'>,
): Promise<void> {
  try {
    health.setAdvice('eviction', evictionAdvice(String(await sendCommand('INFO', 'memory'))));
    health.setAdvice('replication', replicationAdvice(String(await sendCommand('INFO', 'replication'))));
  } catch {
    // The user may lack the right to INFO, which locks do not need.
  }
}

function evictionAdvice(info: string): string | undefined {
  const policy = /^maxmemory_policy:(?<policy>[\w-]+)/mu.exec(info)?.groups?.policy ?? 'noeviction';
  if (policy === 'noeviction') return undefined;
  return `maxmemory-policy is ${policy}: a server short of memory may delete locks that are held; set noeviction`;
}

/**
 * Returns advice for a master that has replicas and no `min-replicas-to-write`. `INFO replication` has a count of good
 * replicas only with this setting.
 */
function replicationAdvice(info: string): string | undefined {
  if (!/^connected_slaves:[1-9]/mu.test(info) || info.includes('min_slaves_good_slaves:')) return undefined;
  return (
    'min-replicas-to-write is 0: a master cut off from its replicas goes on granting locks after a failover; ' +
    'set min-replicas-to-write 1 and min-replicas-max-lag 1'
  );
}
