import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIBFAKETIME = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu']
  .map((directory) => join(directory, 'faketime/libfaketime.so.1'))
  .find(existsSync);

/** The wall clock of a child, to be moved while it runs; its monotonic clock is left alone. Debian's `faketime` does it. */
export class FakeWallClock implements AsyncDisposable {
  private constructor(private readonly directory: string) {}

  static async start(): Promise<FakeWallClock> {
    if (LIBFAKETIME === undefined) throw new Error('libfaketime is missing: apt-get install faketime');
    const clock = new FakeWallClock(await mkdtemp(join(tmpdir(), 'wall-clock-')));
    await clock.set(0);
    return clock;
  }

  /** For the child. */
  get env(): Record<string, string> {
    return {
      LD_PRELOAD: LIBFAKETIME ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** Hours from the true time. */
  async set(hours: number): Promise<void> {
    await writeFile(this.#file, `${hours < 0 ? '-' : '+'}${Math.abs(hours) * 3_600}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true });
  }

  get #file(): string {
    return join(this.directory, 'offset');
  }
}
