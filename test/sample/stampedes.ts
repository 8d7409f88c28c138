import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readdir, readFile, readlink } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { BACKEND_NAMES } from '../../stampede/shop-process/lock-backends.js';
import type { Report } from '../../stampede/report.js';
import { TemporaryDirectory } from '../support/temporary-directory.js';
import { type CompiledSample, compileSample } from './compiled-sample.js';

/** Choices of `--backend` that lock across processes, without the further strategies of a database. */
export const CHOICES = BACKEND_NAMES.filter((name) => name !== 'memory' && !/-(?:row|session)$/u.test(name));

/**
 * Flags of a stampede, which its shops inherit. They end before optimised code has paid for its compilation: without it a
 * small stampede takes a fifth less of the processor.
 */
const SHORT_LIVED = ['--no-opt', '--min-semi-space-size=16'];

/** The variable that says where the newest servers are, in a run with them. */
const NEWER_SERVERS = Object.fromEntries(Object.entries(process.env).filter(([name]) => name === 'LOCK_NEWER_SERVERS'));

export interface Outcome {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `npm run stampede`, without npm, with a directory for everything that it might leave behind. */
export class Stampedes implements AsyncDisposable {
  readonly #running = new Set<ChildProcess>();

  private constructor(
    private readonly sample: CompiledSample,
    private readonly directory: TemporaryDirectory,
  ) {}

  static async prepare(): Promise<Stampedes> {
    const directory = new TemporaryDirectory('stampedes');
    // Servers with accounts of their own have theirs in there.
    await chmod(directory.path, 0o711);
    return new Stampedes(await compileSample(), directory);
  }

  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
    const child = spawn(process.execPath, [...SHORT_LIVED, this.sample.stampede, ...args], {
      env: { PATH: process.env['PATH'], ...NEWER_SERVERS, TMPDIR: this.directory.path, ...env },
    });
    this.#running.add(child);
    child.once('exit', () => this.#running.delete(child));
    return child;
  }

  async run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    return outcomeOf(this.start(args, env));
  }

  /** Returns the files that are still there. */
  files(): Promise<string[]> {
    return readdir(this.directory.path);
  }

  /** Returns the commands of processes that work in there, or were told to put temporary files there. Some overwrite their environment. */
  async processes(): Promise<string[]> {
    const all = await Promise.all((await readdir('/proc')).map((pid) => this.#commandOf(pid)));
    return all.filter((command) => command !== undefined);
  }

  async #commandOf(pid: string): Promise<string | undefined> {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    const worksIn = await readlink(`/proc/${pid}/cwd`).catch(() => '');
    const isOurs =
      environment.includes(`TMPDIR=${this.directory.path}\0`) || worksIn.startsWith(`${this.directory.path}/`);
    if (!isOurs) return undefined;
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return command.replaceAll('\0', ' ').trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#running) child.kill('SIGKILL');
    this.directory[Symbol.dispose]();
    await this.sample[Symbol.asyncDispose]();
  }
}

export async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  if (!child.stdout || !child.stderr) throw new Error('the output is piped');
  const exit = once(child, 'exit');
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return { code, stdout, stderr };
}

export function reportOf({ code, stdout, stderr }: Outcome): Report {
  if (stdout === '') throw new Error(`no report, but ${String(code)}: ${stderr}`);
  return JSON.parse(stdout) as Report;
}
