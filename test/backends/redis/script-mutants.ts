import type { LineScripts } from './placement-scripts.js';

/** Scripts with one mistake in them: what is replaced, and by what. */
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

export const SCRIPT_MUTANTS: readonly ScriptMutant[] = Object.entries<readonly [from: string, to: string]>({
  'let in one more than fit': [
    'return taken and taken + permits <= limit or false',
    'return taken and taken + permits <= limit + 1 or false',
  ],
  'let in one more than fit while nobody waits': [
    'if not taken or taken + permits > limit or',
    'if not taken or taken + permits > limit + 1 or',
  ],
  'forget the first end when somebody joins': ['if first_end > ends_at then first_end = ends_at end', ''],
  'end all shares with the time of the last who came while nobody waits': [
    "ttl = math.max(redis.call('PTTL', lease_key), ttl)",
    '',
  ],
  'free one permit for all that are released while nobody waits': [
    'taken = taken - claim_of(owner)\nif taken',
    'taken = taken - 1\nif taken',
  ],
  'do not count those who wait': [
    'not has_room_for(owner) then\n      return false',
    'not has_room_for(owner) then\n      index = index + 1',
  ],
  'renew all who share the key': [
    '  write_share(owner, token, metadata, ends_at)\n  if ttl > left',
    `  write_share(owner, token, metadata, ends_at)${RENEWS_ALL}\n  if ttl > left`,
  ],
  'count a share that has ended as taken': [
    'return write_shared_lease(taken, first_end, last_end - now)',
    'return write_shared_lease(taken_permits(lease), first_end, last_end - now)',
  ],
  'keep the shares of a lease that is gone': ["if not taken then redis.call('DEL', SHARES) end", ''],
  'free the key with the first who leaves': [
    'if taken > 0 then write_shared_lease(taken, first_end, redis.call',
    'if false then write_shared_lease(taken, first_end, redis.call',
  ],
  'do not tell who is let in': ["redis.pcall('PUBLISH', channel, message)", ''],
  'pass nothing on while others share the key': [
    'if lease and not taken_permits(lease) then return 0 end\nif was_waiting',
    'if lease then return 0 end\nif was_waiting',
  ],
  'forget the first end when somebody renews': [
    'write_shared_lease(taken, math.min(first_end, ends_at), math.max(left, ttl))',
    'write_shared_lease(taken, ends_at, math.max(left, ttl))',
  ],
  'end all shares with the time of the last who came': [
    'write_shared_lease(taken + permits, math.min(first_end, ends_at), math.max(redis.call',
    'write_shared_lease(taken + permits, math.min(first_end, ends_at), math.min(redis.call',
  ],
  'hand the key to one who has left the line': [
    'local was_waiting = not was_held and remove_waiter(owner)',
    'local was_waiting = false',
  ],
}).map(([mistake, [from, to]]) => ({ mistake, from, to }));

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
