import { type Clock, isFulfilledWithin } from '../../../core/index.js';
import type { RedisClient } from './redis-client.js';

interface ConnectionIdentity {
  readonly id: string;
  readonly name: string;
}

/**
 * The replaced connection, which the server is told to end. Commands that the network still delays would otherwise run
 * after their callers have retried: a late acquisition would lock its key until the TTL ends.
 */
export class FormerConnection {
  #identity: ConnectionIdentity | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
  ) {}

  get isKnown(): boolean {
    return this.#identity !== undefined;
  }

  /** Records the identity of the present connection, so that `end` can end that connection after its replacement. */
  async remember(client: RedisClient, sendCommand: (...command: [string, string]) => Promise<unknown>): Promise<void> {
    const name = client.options?.connectionName;
    if (name === undefined) return;
    const id = await sendCommand('CLIENT', 'ID').then(String, () => undefined);
    if (id !== undefined) this.#identity = { id, name };
  }

  /**
   * Has the server end the former connection. Never rejects, and settles within the time-out.
   * @param client client of the present connection, which sends the commands
   */
  async end(client: RedisClient): Promise<void> {
    const identity = this.#identity;
    this.#identity = undefined;
    if (identity)
      await isFulfilledWithin(this.clock, this.timeoutMs, killConnection(client, identity)).catch(() => undefined);
  }
}

/** Ends the connection only if its name matches: another server may have given the same id to another client. */
async function killConnection(client: RedisClient, { id, name }: ConnectionIdentity): Promise<void> {
  const description = String(await client.call('CLIENT', 'LIST', 'ID', id));
  if (description.includes(` name=${name} `)) await client.call('CLIENT', 'KILL', 'ID', id);
}
