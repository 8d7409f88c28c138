import type { RedisClient } from './redis-client.js';

/** A connection as its server knows it. */
export interface ServerConnection {
  readonly id: string;
  readonly name: string;
}

/**
 * Has the server end a former connection of ours, if it still has it: what that was sent and has not run yet never runs.
 * Another server may have given the same number to a stranger, who has another name.
 */
export async function endServerConnection(client: RedisClient, { id, name }: ServerConnection): Promise<void> {
  const found = String(await client.call('CLIENT', 'LIST', 'ID', id));
  if (found.includes(` name=${name} `)) await client.call('CLIENT', 'KILL', 'ID', id);
}
