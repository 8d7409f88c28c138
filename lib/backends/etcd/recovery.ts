import { retryUntilAnswered } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';

/**
 * Asks in the background while etcd is away. Nobody may ask for a lock for a long time, but whoever decides by our health whether
 * this process gets any work wants to know soon.
 */
export class Recovery {
  readonly #forgetHealth: () => void;
  #asking = false;
  #over = false;

  /** @param question a key that may be read */
  constructor(
    private readonly client: EtcdClient,
    private readonly question: string,
  ) {
    this.#forgetHealth = client.health.onChange(() => void this.#askWhileDown());
  }

  end(): void {
    this.#over = true;
    this.#forgetHealth();
  }

  get #isWanted(): boolean {
    return !this.#over && this.client.health.current.status === 'down';
  }

  async #askWhileDown(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    while (this.#isWanted) {
      await retryUntilAnswered(
        () => this.#isAnswered(),
        () => this.#isWanted,
      );
    }
    this.#asking = false;
  }

  /** An answer of a connection that has been left meanwhile does not count. */
  async #isAnswered(): Promise<boolean> {
    await this.client.read([this.question]).catch(() => undefined);
    return !this.#isWanted;
  }
}
