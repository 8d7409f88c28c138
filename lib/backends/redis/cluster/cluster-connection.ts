import { pause, systemClock } from '../../../core/index.js';
import type { ClusterHealth } from './cluster-health.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { hostOf, slotOf } from './cluster-slots.js';
import { cleanError } from '../error.js';
import type { Question, RedisRequest } from '../connection/question.js';
import type { RedisServers } from '../connection/redis-servers.js';

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
    /** A given client puts this before every key. */
    private readonly keyPrefix: string,
    private readonly timeoutMs: number,
  ) {
    this.health = nodes.health;
  }

  async start(check: () => Promise<unknown>): Promise<void> {
    await this.nodes.load();
    try {
      await check();
    } catch (error) {
      this.health.report(cleanError(error).message);
      throw error;
    }
  }

  async ask<T>(leaseKey: string, question: Question<T>): Promise<T> {
    const giveUpAt = systemClock.now() + this.timeoutMs;
    let [address, asking] = [await this.#find(leaseKey), false];
    for (let redirections = 0; ;) {
      try {
        return await this.#askAt(address, asking, leaseKey, question);
      } catch (error) {
        const redirection = redirectionIn(error, address);
        if (redirection?.kind === 'MOVED' || isOutOfService(error)) this.nodes.refresh();
        const over = systemClock.now() >= giveUpAt || redirections === MOST_REDIRECTIONS;
        if (over || !(redirection || isOnItsWay(error))) throw error;
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
    const slot = slotOf(this.keyPrefix + leaseKey);
    const address = (this.nodes.slots ?? (await this.nodes.load())).addressOf(slot);
    if (address !== undefined) return address;
    this.nodes.refresh();
    throw new Error(`CLUSTERDOWN no node serves slot ${slot}`);
  }

  /** `asking`: the slot is on its way there, and these commands, and no later ones, may go where it goes. */
  async #askAt<T>(address: string, asking: boolean, leaseKey: string, question: Question<T>): Promise<T> {
    const node = this.nodes.at(address);
    if (!asking) return node.ask(leaseKey, question);
    // A shared request comes after the others, and has no key.
    const requests = question.requests.flatMap((one): RedisRequest[] => ('once' in one ? [one] : [ASKING, one]));
    const read: typeof question.read = (replies) =>
      question.read(replies.filter((_, index) => requests[index] !== ASKING));
    return node.ask(leaseKey, { ...question, requests, read });
  }
}

/** A node that does not know its own host leaves it out: it is the host that was `asked`. */
function redirectionIn(error: unknown, asked: string): { readonly kind: string; readonly address: string } | undefined {
  const { kind, host, port } =
    /^(?<kind>MOVED|ASK) \d+ (?<host>\S*):(?<port>\d+)/u.exec(error instanceof Error ? error.message : '')?.groups ??
    {};
  if (kind === undefined) return undefined;
  return { kind, address: `${host === undefined || host === '' || host === '?' ? hostOf(asked) : host}:${port}` };
}

/** The keys of the slot are on two nodes. */
function isOnItsWay(error: unknown): boolean {
  return error instanceof Error && /\bTRYAGAIN /u.test(error.message);
}

/** Another node may have become master. Older servers name it within the error of a script. */
function isOutOfService(error: unknown): boolean {
  return error instanceof Error && /\b(?:CLUSTERDOWN|MASTERDOWN|READONLY|LOADING) /u.test(error.message);
}
