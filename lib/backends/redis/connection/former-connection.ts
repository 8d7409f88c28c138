import { type Clock, within } from '../../../core/index.js';
import type { RedisClient } from './redis-client.js';

/** Number and name of a connection, as `CLIENT LIST` shows them. */
interface ConnectionIdentity {
  readonly id: string;
  readonly name: string;
}

/**
 * Has the server end the connection that was replaced. Commands that the network still delays could run
 * when their callers have tried again and are done. A late acquisition would hold its key for a TTL.
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

  /** Remembers the number of the present connection, unless the user has no right to `CLIENT ID`. */
  async remember(client: RedisClient, sendCommand: (...command: [string, string]) => Promise<unknown>): Promise<void> {
    const name = client.options?.connectionName;
    if (name === undefined) return;
    const id = await sendCommand('CLIENT', 'ID').then(String, () => undefined);
    if (id !== undefined) this.#identity = { id, name };
  }

  /** Ends the remembered connection, if the server still has it. Never rejects, and settles within the time-out. */
  async end(client: RedisClient): Promise<void> {
    const identity = this.#identity;
    this.#identity = undefined;
    if (identity) await within(this.clock, this.timeoutMs, killConnection(client, identity)).catch(() => undefined);
  }
}

/** Compares the name first, because another server may have given the same number to another client. */
async function killConnection(client: RedisClient, { id, name }: ConnectionIdentity): Promise<void> {
  const description = String(await client.call('CLIENT', 'LIST', 'ID', id));
  if (description.includes(` name=${name} `)) await client.call('CLIENT', 'KILL', 'ID', id);
}
