import type { LineScripts } from './placement-scripts.js';

/** Scripts with one mistake in them. */
export interface ScriptMutant {
  readonly mistake: string;
  readonly from: string;
  readonly to: string;
}

const RENEWS_ALL = `
  for _, other in ipairs(redis.call('HKEYS', SHARES)) do
    local rest = string.match(redis.call('HGET', SHARES, other), '^%d+(|.*)$')
    redis.call('HSET', SHARES, other, string.format('%.0f', ends_at) .. rest)
  end`;

export const SCRIPT_MUTANTS: readonly ScriptMutant[] = [
  {
    mistake: 'let in one more than fit',
    from: 'return taken and taken + permits <= limit or false',
    to: 'return taken and taken + permits <= limit + 1 or false',
  },
  {
    mistake: 'let in one more than fit while nobody waits',
    from: 'if not taken or taken + permits > limit or',
    to: 'if not taken or taken + permits > limit + 1 or',
  },
  {
    mistake: 'forget the first end when somebody joins',
    from: 'if first_end > ends_at then first_end = ends_at end',
    to: '',
  },
  {
    mistake: 'end all shares with the time of the last who came while nobody waits',
    from: "ttl = math.max(redis.call('PTTL', lease_key), ttl)",
    to: '',
  },
  {
    mistake: 'free one permit for all that are released while nobody waits',
    from: 'taken = taken - claim_of(owner)\nif taken',
    to: 'taken = taken - 1\nif taken',
  },
  {
    mistake: 'do not count those who wait',
    from: 'not has_room_for(owner) then\n      return false',
    to: 'not has_room_for(owner) then\n      index = index + 1',
  },
  {
    mistake: 'renew all who share the key',
    from: '  write_share(owner, token, metadata, ends_at)\n  if ttl > left',
    to: `  write_share(owner, token, metadata, ends_at)${RENEWS_ALL}\n  if ttl > left`,
  },
  {
    mistake: 'count a share that has ended as taken',
    from: 'return write_shared_lease(taken, first_end, last_end - now)',
    to: 'return write_shared_lease(taken_permits(lease), first_end, last_end - now)',
  },
  {
    mistake: 'keep the shares of a lease that is gone',
    from: "if not taken then redis.call('DEL', SHARES) end",
    to: '',
  },
  {
    mistake: 'free the key with the first who leaves',
    from: 'if taken > 0 then write_shared_lease(taken, first_end, redis.call',
    to: 'if false then write_shared_lease(taken, first_end, redis.call',
  },
  {
    mistake: 'do not tell who is let in',
    from: "redis.pcall('PUBLISH', channel, message)",
    to: '',
  },
  {
    mistake: 'pass nothing on while others share the key',
    from: 'if lease and not taken_permits(lease) then return 0 end\nif was_waiting',
    to: 'if lease then return 0 end\nif was_waiting',
  },
  {
    mistake: 'forget the first end when somebody renews',
    from: 'write_shared_lease(taken, math.min(first_end, ends_at), math.max(left, ttl))',
    to: 'write_shared_lease(taken, ends_at, math.max(left, ttl))',
  },
  {
    mistake: 'end all shares with the time of the last who came',
    from: 'write_shared_lease(taken + permits, math.min(first_end, ends_at), math.max(redis.call',
    to: 'write_shared_lease(taken + permits, math.min(first_end, ends_at), math.min(redis.call',
  },
  {
    mistake: 'hand the key to one who has left the line',
    from: 'local was_waiting = not was_held and remove_waiter(owner)',
    to: 'local was_waiting = false',
  },
];

/** @throws when the scripts have changed, and the mistake has to be made elsewhere */
export function mutated(scripts: LineScripts, { from, to }: ScriptMutant): LineScripts {
  const parts = Object.values(scripts).map((source) => source.split(from).length - 1);
  if (Math.max(...parts) !== 1) throw new Error(`some scripts must have this once: ${from}`);
  const change = (source: string): string => source.split(from).join(to);
  const { acquire, acquireShare, release, releaseShare, look, renew, renewShare } = scripts;
  return {
    acquire: change(acquire),
    acquireShare: change(acquireShare),
    release: change(release),
    releaseShare: change(releaseShare),
    look: change(look),
    renew: change(renew),
    renewShare: change(renewShare),
  };
}
