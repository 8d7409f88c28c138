import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AcquireOptions } from 'nestjs-distributed-lock/core';
import { eventually } from './eventually.js';
import type { Connection } from './harness-connection.js';
import type { Belief, HolderApi } from './harness-holder-child.js';
import { type Child, type Exit, spawnChild, type SpawnOptions } from './processes.js';

/** A process of its own that holds locks. Killed at the end of the test, if it still lives. */
export class Holder implements AsyncDisposable {
  private constructor(readonly child: Child<HolderApi>) {}

  static async start(connection: Connection, options?: SpawnOptions): Promise<Holder> {
    const holder = await Holder.spawn(options);
    await holder.open(connection);
    return holder;
  }

  /** One without a backend yet. */
  static async spawn(options?: SpawnOptions): Promise<Holder> {
    return new Holder(await spawnChild<HolderApi>(new URL('./harness-holder-child.ts', import.meta.url), options));
  }

  open(connection: Connection): Promise<void> {
    return this.child.call('open', connection);
  }

  async acquire(key: string, options: AcquireOptions): Promise<{ readonly fencingToken: bigint }> {
    return { fencingToken: await this.child.call('acquire', { key, options }) };
  }

  transfer(key: string, withinMs: number): Promise<string> {
    return this.child.call('transfer', { key, withinMs });
  }

  acquireAndRelease(key: string, options: AcquireOptions): Promise<void> {
    return this.child.call('acquireAndRelease', { key, options });
  }

  /** The process now runs a job, and ends by itself. */
  startJob(key: string, options: AcquireOptions): void {
    // Whether this is answered before the process ends does not matter.
    this.child.call('startJob', { key, options }).catch(() => undefined);
  }

  /**
   * Has it compute without a pause, freezes it in the middle of that, and lets it go on when `meanwhile` is over. Resolves to
   * the result of `meanwhile`, and to what the lock looked like in the very next step of the process.
   */
  async freezeWhile<T>(key: string, meanwhile: () => Promise<T>): Promise<{ result: T; belief: Belief }> {
    const said = this.child.stderr.length;
    const marker = join(tmpdir(), `thawed-${randomUUID()}`);
    const belief = this.child.call('computeUntilThawed', { key, marker });
    // When `meanwhile` fails, that is what the caller is told, and not the end of the process.
    belief.catch(() => undefined);
    await eventually(() => this.child.stderr.slice(said).includes('computing'));
    this.child.freeze();
    try {
      const result = await meanwhile();
      writeFileSync(marker, '');
      this.child.thaw();
      return { result, belief: await belief };
    } finally {
      rmSync(marker, { force: true });
    }
  }

  close(): Promise<void> {
    return this.child.call('close');
  }

  /** Lets it end by itself. */
  exit(): Promise<Exit> {
    this.child.finish();
    return this.child.exited;
  }

  async kill(): Promise<void> {
    await this.child.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.kill();
  }
}
