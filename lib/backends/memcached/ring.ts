import { createHash } from 'node:crypto';
import { ReportedHealth } from '../../core/index.js';
import { MemcachedError } from './error.js';
import { MemcachedNode } from './node.js';
import type { ResolvedMemcachedOptions } from './options.js';

/**
 * The servers that the keys are spread over, by highest random weight (Thaler and Ravishankar 1998): a key belongs to
 * one of them for good. A server that is down takes its keys with it, for if they moved, a second holder would get in.
 */
export class MemcachedRing {
  readonly health = new ReportedHealth();
  readonly #nodes: readonly MemcachedNode[];
  #greeted: Promise<unknown> | undefined;

  constructor(options: ResolvedMemcachedOptions) {
    // The name of the only server does not matter, and processes may call it differently.
    const servers =
      options.servers.length === 1
        ? 'one server'
        : options.servers
            .map(({ name }) => name)
            .toSorted()
            .join(',');
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
   * More than half of the servers have said that other processes look for keys on the same ones: then a list that some
   * servers were added to, or removed from, is noticed before anybody locks by it, also while a few are down.
   * @throws LockConfigurationError when others use another list; MemcachedError when too few can be asked
   */
  async agree(): Promise<void> {
    const all = this.#nodes.length;
    if (all === 1) return;
    this.#greeted ??= Promise.all(this.#nodes.map((node) => node.greet()));
    await this.#greeted;
    for (const { misconfigured } of this.#nodes) if (misconfigured) throw misconfigured;
    const agreed = this.#nodes.filter(({ agrees }) => agrees).length;
    if (agreed * 2 > all) return;
    throw new MemcachedError('not-sent', `only ${agreed} of ${all} servers could be asked which servers others use`);
  }

  close(): void {
    for (const node of this.#nodes) node.close();
  }

  #report(): void {
    for (const { name, advice } of this.#nodes) this.health.advise(name, advice && `${name}: ${advice}`);
    const troubles = this.#nodes.map(({ trouble }) => trouble).filter((trouble) => trouble !== undefined);
    if (troubles.length > 0) this.health.report('down', troubles.join('; '));
    else this.health.report('up');
  }
}
