import { type Clock, systemClock } from '../../core/index.js';
import type { ClusterHealth } from './cluster-health.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { slotOf } from './cluster-slots.js';
import type { RedisRequest } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';

const MOST_REDIRECTIONS = 5;
const ASKING = ['ASKING'] as const;

/**
 * Has the master of each key answer, and follows the keys wherever they go:
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#redirection-and-resharding
 */
export class ClusterConnection implements RedisServers {
  readonly health: ClusterHealth;

  constructor(
    private readonly nodes: ClusterNodes,
    /** What a client that was given puts before every key. */
    private readonly keyPrefix: string,
    private readonly timeoutMs: number,
    private readonly clock: Clock = systemClock,
  ) {
    this.health = nodes.health;
  }

  /** A slot: the keys of two must not meet in one command. */
  groupOf(leaseKey: string): number {
    return slotOf(this.keyPrefix + leaseKey);
  }

  async ask(leaseKey: string, ...requests: readonly RedisRequest[]): Promise<unknown[]> {
    const giveUpAt = this.clock.now() + this.timeoutMs;
    let address = await this.#find(leaseKey);
    for (let redirections = 0; ; redirections += 1) {
      try {
        return await this.nodes.at(address).ask(leaseKey, ...requests);
      } catch (error) {
        const redirection = redirectionIn(error);
        if (redirection?.kind === 'MOVED' || isOutOfService(error)) this.nodes.refresh();
        if (!redirection || redirections === MOST_REDIRECTIONS || this.clock.now() >= giveUpAt) throw error;
        if (redirection.kind === 'ASK') return this.#askOnce(redirection.address, leaseKey, requests);
        address = redirection.address;
      }
    }
  }

  close(): Promise<void> {
    return this.nodes.close();
  }

  async #find(leaseKey: string): Promise<string> {
    const slot = this.groupOf(leaseKey);
    const address = (this.nodes.slots ?? (await this.nodes.load())).addressOf(slot);
    if (address !== undefined) return address;
    this.nodes.refresh();
    throw new Error(`CLUSTERDOWN no node serves slot ${slot}`);
  }

  /** A slot on its way: these commands, and no later ones, may go where it goes. */
  async #askOnce(address: string, leaseKey: string, requests: readonly RedisRequest[]): Promise<unknown[]> {
    const answers = await this.nodes.at(address).ask(leaseKey, ...requests.flatMap((request) => [ASKING, request]));
    return answers.filter((_, i) => i % 2 === 1);
  }
}

function redirectionIn(error: unknown): { readonly kind: string; readonly address: string } | undefined {
  const { kind, address } =
    /^(?<kind>MOVED|ASK) \d+ (?<address>\S+:\d+)/u.exec(error instanceof Error ? error.message : '')?.groups ?? {};
  return kind === undefined || address === undefined ? undefined : { kind, address };
}

/** Another node may have taken its place. */
function isOutOfService(error: unknown): boolean {
  return error instanceof Error && /^(?:CLUSTERDOWN|MASTERDOWN|READONLY|LOADING) /u.test(error.message);
}
