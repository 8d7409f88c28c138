import { type Clock, systemClock } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import { EtcdSession } from './session.js';
import type { EtcdLockNames } from './lock-names.js';

/** The session that new places belong to: a new one when the last is over. */
export class ClientSession {
  #session: EtcdSession | undefined;
  #opening: Promise<EtcdSession> | undefined;

  constructor(
    private readonly client: EtcdClient,
    private readonly names: EtcdLockNames,
    private readonly sessionTtlMs: number,
    private readonly clock: Clock = systemClock,
  ) {}

  get(): Promise<EtcdSession> | EtcdSession {
    if (this.#session?.over === false) return this.#session;
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** Ends all entries at once. Rejects when the server does not hear of it: they then end by themselves. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session && !session.gone.aborted) await session.revoke();
  }

  /** Entries of the last session would stand in the way of those of the next. */
  async #open(): Promise<EtcdSession> {
    await this.close().catch(() => undefined);
    this.#session = await EtcdSession.grant(this.client, this.names, this.sessionTtlMs, this.clock);
    return this.#session;
  }
}
