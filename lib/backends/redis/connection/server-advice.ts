import type { ReportedHealth } from '../../../core/index.js';

/** Advice on a server that applies the rules of a cluster behind one address. */
export const SLOTS_ADVICE =
  'the server refuses commands with keys of several slots (CROSSSLOT), as managed clusters behind one address do: ' +
  'requests of one slot share a command, others go out one by one';

/** Asks the server for its settings, and adds advice on them to the health. */
export async function adviseOnServer(
  sendCommand: (...command: [string, string]) => Promise<unknown>,
  health: Pick<ReportedHealth, 'setAdvice'>,
): Promise<void> {
  try {
    health.setAdvice('eviction', evictionAdvice(String(await sendCommand('INFO', 'memory'))));
    health.setAdvice('replication', replicationAdvice(String(await sendCommand('INFO', 'replication'))));
  } catch {
    // The right to INFO is optional: locks work without it.
  }
}

/** Returns advice on the server's `INFO memory`, or `undefined` when its setting is right. */
function evictionAdvice(info: string): string | undefined {
  const policy = /^maxmemory_policy:(?<policy>[\w-]+)/mu.exec(info)?.groups?.policy ?? 'noeviction';
  if (policy === 'noeviction') return undefined;
  return `maxmemory-policy is ${policy}: a server short of memory may delete locks that are held; set noeviction`;
}

/** Returns advice on `INFO replication`, which mentions good replicas only where `min-replicas-to-write` is set. */
function replicationAdvice(info: string): string | undefined {
  if (!/^connected_slaves:[1-9]/mu.test(info) || info.includes('min_slaves_good_slaves:')) return undefined;
  return (
    'min-replicas-to-write is 0: a master cut off from its replicas goes on granting locks after a failover; ' +
    'set min-replicas-to-write 1 and min-replicas-max-lag 1'
  );
}
