/** Advice for an operator, by the server's `INFO memory`. */
export function evictionAdvice(info: string): string | undefined {
  const policy = /^maxmemory_policy:(?<policy>[\w-]+)/mu.exec(info)?.groups?.policy ?? 'noeviction';
  if (policy === 'noeviction') return undefined;
  return `maxmemory-policy is ${policy}: a server short of memory may delete locks that are held; set noeviction`;
}

/** The same for `INFO replication`, which mentions good replicas only where they are required. */
export function replicationAdvice(info: string): string | undefined {
  if (!/^connected_slaves:[1-9]/mu.test(info) || info.includes('min_slaves_good_slaves:')) return undefined;
  return (
    'min-replicas-to-write is 0: a master cut off from its replicas goes on granting locks after a failover; ' +
    'set min-replicas-to-write 1 and min-replicas-max-lag 1'
  );
}
