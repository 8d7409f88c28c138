import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that is removed with its block, by `using`. */
export class TemporaryDirectory implements Disposable {
  readonly path: string;

  constructor(name: string, parent = tmpdir()) {
    this.path = join(parent, `${name}-${randomUUID()}`);
    mkdirSync(this.path, { mode: 0o700 });
  }

  /** Returns the path of a directory that the tests of a `describe` share. It is there while they and their hooks run. */
  static shared(name: string, parent = tmpdir()): string {
    const path = join(parent, `${name}-${randomUUID()}`);
    beforeAll(() => mkdirSync(path, { mode: 0o700 }));
    afterAll(() => rmSync(path, { recursive: true }));
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}
