import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../..');
export const run = (command: string, args: string[], cwd: string): string =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 16 * 1024 * 1024,
    env: { ...process.env, NODE_OPTIONS: '' },
  });

const DEPENDENCIES = [
  'rxjs',
  'reflect-metadata',
  'tslib',
  'ioredis',
  'redis',
  'typeorm',
  'mysql2',
  'pg',
  'prom-client',
  '@opentelemetry',
];

/** The packed tarball, as an application gets it. Needs the build. */
export class PackedLibrary {
  readonly tarball: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'ndl-package-'));

  constructor() {
    run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', this.#directory], root);
    const [name = ''] = readdirSync(this.#directory);
    this.tarball = join(this.#directory, name);
  }

  /** Returns the home of an application with the packed library, and Nest and the clients of `modules`. */
  application(name: string, modules: string, type: 'module' | 'commonjs'): string {
    const home = join(this.#directory, name);
    const library = join(home, 'node_modules/nestjs-distributed-lock');
    mkdirSync(library, { recursive: true });
    run('tar', ['-xzf', this.tarball, '-C', library, '--strip-components=1'], home);
    symlinkSync(join(modules, '@nestjs'), join(home, 'node_modules/@nestjs'));
    for (const dependency of DEPENDENCIES) {
      symlinkSync(join(root, 'node_modules', dependency), join(home, 'node_modules', dependency));
    }
    writeFileSync(join(home, 'package.json'), JSON.stringify({ name, type }));
    return home;
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }
}

/** Runs `text` as a file of the application, and returns its output. */
export function node(home: string, file: string, text: string): string {
  writeFileSync(join(home, file), text);
  return run(process.execPath, [file], home);
}
