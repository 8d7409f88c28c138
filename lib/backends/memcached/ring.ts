import { createHash } from 'node:crypto';
import { isLockError, ReportedHealth } from '../../core/index.js';
import { MemcachedError } from './error.js';
import { MemcachedNode } from './node.js';
import type { ResolvedMemcachedOptions } from './options.js';

/**
 * The servers that the keys are spread over, by highest random weight (Thaler and Ravishankar 1998). A key belongs to
 * one of them for good: if it moved from a server that is down, a second holder would get in.
 */
export class MemcachedRing {
  readonly health = new ReportedHealth();
  readonly #nodes: readonly MemcachedNode[];
  #greeted: Promise<unknown> | undefined;

  constructor(options: ResolvedMemcachedOptions) {
    const names = options.servers.map(({ name }) => name).toSorted();
    // The name of the only server does not matter, and processes may call it differently.
    const servers = names.length === 1 ? 'one server' : names.join(',');
    this.#nodes = options.servers.map(
      ({ name, host, port }) => new MemcachedNode(name, { ...options, host, port, servers }, () => this.#report()),
    );
  }

  nodeOf(key: string): MemcachedNode {
    const [only, second] = this.#nodes;
    if (only && !second) return only;
    let [best, highest] = [only, -1];
    for (const node of this.#nodes) {
      const weight = createHash('sha256').update(`${node.name}\n${key}`).digest().readUIntBE(0, 6);
      if (weight > highest) [best, highest] = [node, weight];
    }
    if (!best) throw new TypeError('there is no server');
    return best;
  }

  /** Connects to all. @throws as `agree`; MemcachedError when the only server does not answer */
  async start(): Promise<void> {
    const [only, second] = this.#nodes;
    if (only && !second) await only.run(async () => undefined);
    else await this.agree();
  }

  /**
   * Resolves when more than half of the servers have said that other processes look for keys on the same ones. Another
   * list of servers is noticed in this way before anybody locks by it, also while a few are down.
   * @throws LockConfigurationError when others use another list; MemcachedError when too few can be asked
   */
  async agree(): Promise<void> {
    const all = this.#nodes.length;
    if (all === 1) return;
    this.#greeted ??= Promise.all(this.#nodes.map((node) => node.greet()));
    await this.#greeted;
    for (const { failure } of this.#nodes) if (isLockError(failure, 'LOCK_CONFIGURATION')) throw failure;
    const agreed = this.#nodes.filter(({ agrees }) => agrees).length;
    if (agreed * 2 > all) return;
    throw new MemcachedError('not-sent', `only ${agreed} of ${all} servers could be asked which servers others use`);
  }

  close(): void {
    for (const node of this.#nodes) node.close();
  }

  #report(): void {
    for (const { name, advice } of this.#nodes) this.health.advise(name, advice && `${name}: ${advice}`);
    const troubles = this.#nodes.flatMap(({ failure }) => failure?.message ?? []);
    if (troubles.length > 0) this.health.report('down', troubles.join('; '));
    else this.health.report('up');
  }
}
