import { pause, systemClock } from '../../../core/index.js';
import type { RedisServers, Question } from '../connection/redis-servers.js';
import type { ClusterHealth } from './cluster-health.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { addressAs } from './cluster-slots.js';

const MOST_REDIRECTIONS = 5;
const ASKING = ['ASKING'] as const;
/** How soon a command is tried again whose keys are on two nodes. */
const TRY_AGAIN_MS = 50;

/**
 * Has the master of each key answer, and follows the keys wherever they go:
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#redirection-and-resharding
 */
export class ClusterConnection implements RedisServers {
  readonly health: ClusterHealth;

  constructor(
    private readonly nodes: ClusterNodes,
    readonly timeoutMs: number,
  ) {
    this.health = nodes.health;
  }

  get keyPrefix(): string {
    return this.nodes.keyPrefix;
  }

  async shards(): Promise<readonly RedisServers[]> {
    const { masters } = await this.nodes.load();
    return Array.from(masters, (address) => this.nodes.at(address));
  }

  async prepare(): Promise<void> {
    await this.nodes.load();
  }

  async ask<T>(leaseKey: string, question: Question<T>): Promise<T> {
    const abandonAt = systemClock.now() + this.timeoutMs;
    let [address, asking] = [await this.#find(leaseKey), false];
    for (let redirections = 0; ;) {
      try {
        return await this.#askAt(address, asking, leaseKey, question);
      } catch (error) {
        const message = error instanceof Error ? error.message : '';
        const redirection = redirectionIn(message, address);
        if (redirection?.kind === 'MOVED' || OUT_OF_SERVICE.test(message)) this.nodes.refresh();
        const over = systemClock.now() >= abandonAt || redirections === MOST_REDIRECTIONS;
        if (over || !(redirection || ON_ITS_WAY.test(message))) throw error;
        if (redirection) {
          redirections += 1;
          [address, asking] = [redirection.address, redirection.kind === 'ASK'];
        } else {
          await pause(systemClock, TRY_AGAIN_MS);
          [address, asking] = [await this.#find(leaseKey), false];
        }
      }
    }
  }

  close(): Promise<void> {
    return this.nodes.close();
  }

  async #find(leaseKey: string): Promise<string> {
    const slot = this.nodes.slotOf(leaseKey);
    const address = (this.nodes.slots ?? (await this.nodes.load())).addressOf(slot);
    if (address !== undefined) return address;
    this.nodes.refresh();
    throw new Error(`CLUSTERDOWN no node serves slot ${slot}`);
  }

  /** `asking`: the slot is on its way there, and these commands, and no later ones, may go where it goes. */
  async #askAt<T>(address: string, asking: boolean, leaseKey: string, question: Question<T>): Promise<T> {
    const node = this.nodes.at(address);
    if (!asking) return node.ask(leaseKey, question);
    const requests = question.requests.flatMap((request) => [ASKING, request]);
    const read: typeof question.read = (replies) =>
      question.read(replies.filter((_, index) => requests[index] !== ASKING));
    return node.ask(leaseKey, { ...question, requests, read });
  }
}

/** The keys of the slot are on two nodes. */
const ON_ITS_WAY = /\bTRYAGAIN /u;
/** Another node may have become master. Older servers name it within the error of a script. */
const OUT_OF_SERVICE = /\b(?:CLUSTERDOWN|MASTERDOWN|READONLY|LOADING) /u;

function redirectionIn(
  message: string,
  asked: string,
): { readonly kind: string; readonly address: string } | undefined {
  const { kind, host, port } = /^(?<kind>MOVED|ASK) \d+ (?<host>\S*):(?<port>\d+)/u.exec(message)?.groups ?? {};
  return kind === undefined ? undefined : { kind, address: addressAs(host, port, asked) };
}
