/** Tracks the directories and processes of one run of the tests, and removes them at its end. */
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, pid } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

const SHARED_MEMORY = '/dev/shm';
/** Names of files that Node, its tools and installed packages write, and not the tests. */
const TOOL_FILES_PATTERN = /^(node-compile-cache|v8-compile-cache.*|tsx-.*|jest_\w+|scarf-js-history-.*)$/u;
/** Name of the file with the outcomes that could not be judged, a line each. */
const NOT_JUDGED = 'not-judged';
/** Milliseconds until the processes of the run must have ended: a killed server may take a moment. */
const GRACE_MS = 5_000;

/** Run of the tests. Child processes find its directories and its id in their environment. */
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
    // Servers run under their own accounts, and write to these directories, too.
    for (const directory of this.#directories) chmodSync(directory, 0o1777);
    env.LOCK_TEST_RUN = this.#id;
    // test/support/judging.ts writes it.
    env.LOCK_NOT_JUDGED = join(env.TMPDIR, NOT_JUDGED);
    // Without it a package of the applications reports each installation.
    env.SCARF_ANALYTICS = 'false';
  }

  /**
   * Removes the directories, and ends processes that still run. Resolves to a description of every file and process
   * left.
   */
  async end() {
    const processes = await this.#endProcesses();
    const files = this.#directories.flatMap((directory) =>
      readdirSync(directory)
        .filter((name) => name !== NOT_JUDGED && !TOOL_FILES_PATTERN.test(name))
        .map((name) => join(directory, name)),
    );
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
    removeFilesOfFaketime();
    return [...processes, ...files];
  }

  /** Returns the outcomes that could not be judged, because the processor was withheld: see test/support/judging.ts. */
  readNotJudged() {
    return existsSync(env.LOCK_NOT_JUDGED) ? readFileSync(env.LOCK_NOT_JUDGED, 'utf8').trimEnd().split('\n') : [];
  }

  async #endProcesses() {
    const giveUpAt = performance.now() + GRACE_MS;
    let left = this.#findProcesses();
    while (left.length > 0 && performance.now() < giveUpAt) {
      await pause(50);
      left = this.#findProcesses();
    }
    for (const { id } of left) process.kill(id, 'SIGKILL');
    return left.map(({ id, command }) => `process ${id}: ${command}`);
  }

  /** Returns the processes of this run. Only Linux tells the environment of a process. */
  #findProcesses() {
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

/** Removes what libfaketime leaves of a process that was killed: a file with the process's id in its name. */
function removeFilesOfFaketime() {
  if (!existsSync(SHARED_MEMORY)) return;
  for (const name of readdirSync(SHARED_MEMORY)) {
    const id = /^(?:sem\.)?faketime_(?:shm|sem)_(\d+)$/u.exec(name)?.[1];
    if (id !== undefined && !existsSync(`/proc/${id}`)) rmSync(join(SHARED_MEMORY, name), { force: true });
  }
}
