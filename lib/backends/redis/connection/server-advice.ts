import type { ReportedHealth } from '../../../core/index.js';

/** Advice on a server that keeps the rules of a cluster at one address. */
export const SLOTS_ADVICE =
  'the server refuses commands with keys of several slots (CROSSSLOT), as managed clusters behind one address do: ' +
  'requests of one slot share a command, others go out one by one';

/** Asks the server for its settings, and puts advice on them into the health. */
export async function askForAdvice(
  send: (...command: [string, string]) => Promise<unknown>,
  health: Pick<ReportedHealth, 'advise'>,
): Promise<void> {
  try {
    health.advise('eviction', evictionAdvice(String(await send('INFO', 'memory'))));
    health.advise('replication', replicationAdvice(String(await send('INFO', 'replication'))));
  } catch {
    // A user without this right has locks just as well.
  }
}

/** Advice for an operator, by the server's `INFO memory`. */
function evictionAdvice(info: string): string | undefined {
  const policy = /^maxmemory_policy:(?<policy>[\w-]+)/mu.exec(info)?.groups?.policy ?? 'noeviction';
  if (policy === 'noeviction') return undefined;
  return `maxmemory-policy is ${policy}: a server short of memory may delete locks that are held; set noeviction`;
}

/** The same for `INFO replication`, which mentions good replicas only where they are required. */
function replicationAdvice(info: string): string | undefined {
  if (!/^connected_slaves:[1-9]/mu.test(info) || info.includes('min_slaves_good_slaves:')) return undefined;
  return (
    'min-replicas-to-write is 0: a master cut off from its replicas goes on granting locks after a failover; ' +
    'set min-replicas-to-write 1 and min-replicas-max-lag 1'
  );
}
