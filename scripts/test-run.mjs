/** What belongs to one run of the tests: its directories and its processes. Nothing of them is to stay behind. */
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, pid } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

const SHARED_MEMORY = '/dev/shm';
/** Files that Node, its tools and scripts of installed packages write, and that are no test's. */
const FILES_OF_TOOLS = /^(node-compile-cache|v8-compile-cache.*|tsx-.*|jest_\w+|scarf-js-history-.*)$/u;
/** A server that was killed at the very end may take a moment. */
const GRACE_MS = 5_000;

/** The directories and processes of a run: children find them in their environment. */
export class TestRun {
  #id = randomUUID();
  #directories;

  constructor() {
    env.LOCK_TEMPLATES ??= tmpdir();
    env.TMPDIR = mkdtempSync(join(tmpdir(), 'lock-tests-'));
    this.#directories = [env.TMPDIR];
    if (existsSync(SHARED_MEMORY)) {
      env.LOCK_SHARED_MEMORY = mkdtempSync(join(SHARED_MEMORY, 'lock-tests-'));
      this.#directories.push(env.LOCK_SHARED_MEMORY);
    }
    // Servers run under accounts of their own, and write there, too.
    for (const directory of this.#directories) chmodSync(directory, 0o1777);
    env.LOCK_TEST_RUN = this.#id;
    // A package that the applications install reports each installation otherwise.
    env.SCARF_ANALYTICS = 'false';
  }

  /** Removes its directories. Resolves to what was left in them, and to the processes that still live, ended by now. */
  async end() {
    const processes = await this.#endProcesses();
    const files = this.#directories.flatMap((directory) =>
      readdirSync(directory)
        .filter((name) => !FILES_OF_TOOLS.test(name))
        .map((name) => join(directory, name)),
    );
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
    return [...processes, ...files];
  }

  async #endProcesses() {
    const giveUpAt = performance.now() + GRACE_MS;
    let left = this.#processes();
    while (left.length > 0 && performance.now() < giveUpAt) {
      await pause(50);
      left = this.#processes();
    }
    for (const { id } of left) process.kill(id, 'SIGKILL');
    return left.map(({ id, command }) => `process ${id}: ${command}`);
  }

  /** On Linux. */
  #processes() {
    if (!existsSync('/proc/self/environ')) return [];
    return readdirSync('/proc')
      .filter((name) => /^\d+$/u.test(name) && Number(name) !== pid)
      .flatMap((name) => {
        try {
          if (!readFileSync(`/proc/${name}/environ`, 'utf8').includes(this.#id)) return [];
          return [{ id: Number(name), command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ') }];
        } catch {
          return [];
        }
      });
  }
}
