import { type Clock, within } from '../../../core/index.js';
import type { RedisClient } from './redis-client.js';

/**
 * The connection before the present one, as the server knows it. Requests that the network still holds back would run
 * after their callers have asked again and are done: an acquisition would close its key for a TTL.
 */
export class FormerConnection {
  #known: { readonly id: string; readonly name: string } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
  ) {}

  get isKnown(): boolean {
    return this.#known !== undefined;
  }

  /** Learns the number of the present connection for the time after it. The right to ask for it is optional. */
  async learn(client: RedisClient, send: (...command: [string, string]) => Promise<unknown>): Promise<void> {
    const name = client.options?.connectionName;
    if (name === undefined) return;
    const id = await send('CLIENT', 'ID').then(String, () => undefined);
    if (id !== undefined) this.#known = { id, name };
  }

  /** Has the server end that connection, if it still has it. Never rejects, and settles within the time-out. */
  async end(client: RedisClient): Promise<void> {
    const known = this.#known;
    this.#known = undefined;
    if (known) await within(this.clock, this.timeoutMs, kill(client, known)).catch(() => undefined);
  }
}

/** Another server may have given the same number to a stranger, who has another name. */
async function kill(client: RedisClient, { id, name }: { readonly id: string; readonly name: string }): Promise<void> {
  const found = String(await client.call('CLIENT', 'LIST', 'ID', id));
  if (found.includes(` name=${name} `)) await client.call('CLIENT', 'KILL', 'ID', id);
}
