import { parseClaim, isHolderByIndex } from 'nestjs-distributed-lock/core';
import type { Holding, Step } from './moments.js';

interface Node {
  readonly owner: string;
  readonly left?: number;
}

/** A key as a list of nodes: whoever fits behind all before it has the key, and a node ends with its process. */
export class NodesPlacement {
  #line: readonly Node[] = [];

  get holdings(): readonly Holding[] {
    const holds = isHolderByIndex(this.#line.map(({ owner }) => parseClaim(owner)));
    return this.#line.filter((_, i) => holds[i]);
  }

  get waiters(): readonly string[] {
    const inside = this.holdings.map(({ owner }) => owner);
    return this.owners.filter((owner) => !inside.includes(owner));
  }

  get owners(): readonly string[] {
    return this.#line.map(({ owner }) => owner);
  }

  /** Whether the key is the owner's, if the step asked for it. */
  take(step: Step): boolean | undefined {
    switch (step.does) {
      case 'ask':
        return this.#ask(step.owner, step.lasts, step.waits);
      case 'renew':
        return this.#last(step.owner, step.lasts);
      case 'release':
        return this.#leave(step.owner);
      case 'die':
        this.#leave(step.owner);
        break;
      case 'revoke':
        for (const { owner } of this.holdings) this.#leave(owner);
        break;
      case 'silence':
        break;
      case 'pass':
        this.#line = this.#line.flatMap(({ owner, left }) => {
          if (left === undefined) return [{ owner }];
          return left > step.units ? [{ owner, left: left - step.units }] : [];
        });
    }
    return undefined;
  }

  #ask(owner: string, lasts: number, waits: boolean): boolean {
    if (!this.owners.includes(owner)) this.#line = [...this.#line, { owner }];
    const isIn = this.#last(owner, lasts);
    if (!isIn && !waits) this.#leave(owner);
    return isIn;
  }

  #last(owner: string, left: number): boolean {
    const isIn = this.#has(owner);
    if (isIn) this.#line = this.#line.map((node) => (node.owner === owner ? { owner, left } : node));
    return isIn;
  }

  #leave(owner: string): boolean {
    const wasIn = this.#has(owner);
    this.#line = this.#line.filter((node) => node.owner !== owner);
    return wasIn;
  }

  #has(owner: string): boolean {
    return this.holdings.some((one) => one.owner === owner);
  }
}
