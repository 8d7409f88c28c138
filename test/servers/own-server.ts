import { Startable } from '../support/startable.js';
import type { ServerProcess } from './server-process.js';

/** A real server on 127.0.0.1 in a process of its own, with the faults that a test may inflict on it. */
export abstract class OwnServer extends Startable {
  // `prepare` finds one, and makes the other.
  port!: number;
  directory!: string;
  protected process: ServerProcess | undefined;

  protected abstract prepare(): Promise<void>;

  /** Starts the process, on the port and with the data that there are. */
  protected abstract launch(): Promise<void>;

  /** @throws when it does not start, and leaves nothing then */
  async start(): Promise<void> {
    await this.prepare();
    try {
      await this.launch();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** What it has written since it was started last. */
  get output(): string {
    return this.process?.output ?? '';
  }

  /** Stops answering and keeps every connection open; the kernel accepts new ones. */
  freeze(): void {
    this.process?.freeze();
  }

  thaw(): void {
    this.process?.thaw();
  }

  /** Thaws also when `work` fails. */
  async whileFrozen(work: () => Promise<unknown>): Promise<void> {
    this.freeze();
    try {
      await work();
    } finally {
      this.thaw();
    }
  }

  /** SIGKILL; resolves when the process is gone. What it has written to its disk stays. */
  async kill(): Promise<void> {
    await this.process?.kill();
  }
}
