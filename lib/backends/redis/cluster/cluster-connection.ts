import { pause, systemClock } from '../../../core/index.js';
import type { RedisRequest, RedisServers } from '../connection/redis-servers.js';
import type { ClusterHealth } from './cluster-health.js';
import type { ClusterNodes } from './cluster-nodes.js';
import { resolveAddress } from './cluster-slots.js';

const MAX_REDIRECTIONS = 5;
const ASKING_COMMAND = ['ASKING'] as const;
const MIGRATION_RETRY_MS = 50;

/**
 * Sends each request to the master of its key, and follows redirections:
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

  trackKeys(onChange: (name: string | undefined) => void): void {
    this.nodes.trackKeys(onChange);
  }

  get shouldTrackMoreKeys(): boolean {
    return this.nodes.shouldTrackMoreKeys;
  }

  async loadShards(): Promise<readonly RedisServers[]> {
    const { masters } = await this.nodes.loadSlots();
    return Array.from(masters, (address) => this.nodes.connectionTo(address));
  }

  async startConnecting(): Promise<void> {
    await this.nodes.loadSlots();
  }

  async send<T>(leaseKey: string, request: RedisRequest<T>): Promise<T> {
    const deadline = systemClock.now() + this.timeoutMs;
    let [address, isAsking] = [await this.#masterOf(leaseKey), false];
    for (let redirectionCount = 0; ;) {
      try {
        return await this.#sendTo(address, isAsking, leaseKey, request);
      } catch (error) {
        const message = error instanceof Error ? error.message : '';
        const redirection = parseRedirection(message, address);
        if (redirection?.kind === 'MOVED' || OUT_OF_SERVICE_PATTERN.test(message)) this.nodes.refreshSlots();
        const isLastAttempt = systemClock.now() >= deadline || redirectionCount === MAX_REDIRECTIONS;
        if (isLastAttempt || !(redirection || MIGRATING_KEYS_PATTERN.test(message))) throw error;
        if (redirection) {
          redirectionCount += 1;
          [address, isAsking] = [redirection.address, redirection.kind === 'ASK'];
        } else {
          await pause(systemClock, MIGRATION_RETRY_MS);
          [address, isAsking] = [await this.#masterOf(leaseKey), false];
        }
      }
    }
  }

  close(): Promise<void> {
    return this.nodes.close();
  }

  async #masterOf(leaseKey: string): Promise<string> {
    const slot = this.nodes.slotOf(leaseKey);
    const address = (this.nodes.slots ?? (await this.nodes.loadSlots())).masterOf(slot);
    if (address !== undefined) return address;
    this.nodes.refreshSlots();
    throw new Error(`CLUSTERDOWN no node serves slot ${slot}`);
  }

  /** @param isAsking whether to send ASKING before each command, because the slot is migrating to the node */
  async #sendTo<T>(address: string, isAsking: boolean, leaseKey: string, request: RedisRequest<T>): Promise<T> {
    const node = this.nodes.connectionTo(address);
    if (!isAsking) return node.send(leaseKey, request);
    const commands = request.commands.flatMap((command) => [ASKING_COMMAND, command]);
    const read: typeof request.read = (replies) =>
      request.read(replies.filter((_, index) => commands[index] !== ASKING_COMMAND));
    return node.send(leaseKey, { ...request, commands, read });
  }
}

/** Error of a command whose keys are on two nodes, while their slot migrates. */
const MIGRATING_KEYS_PATTERN = /\bTRYAGAIN /u;
/** Errors after which another node may be the master. Older servers put such an error inside that of a script. */
const OUT_OF_SERVICE_PATTERN = /\b(?:CLUSTERDOWN|MASTERDOWN|READONLY|LOADING) /u;

function parseRedirection(
  message: string,
  replierAddress: string,
): { readonly kind: string; readonly address: string } | undefined {
  const { kind, host, port } = /^(?<kind>MOVED|ASK) \d+ (?<host>\S*):(?<port>\d+)/u.exec(message)?.groups ?? {};
  return kind === undefined ? undefined : { kind, address: resolveAddress(host, port, replierAddress) };
}
