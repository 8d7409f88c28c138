import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Options, transformFile } from '@swc/core';

const ROOT = join(import.meta.dirname, '../..');

const OPTIONS: Options = {
  swcrc: false,
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
    keepClassNames: true,
  },
  module: { type: 'es6' },
};

export interface CompiledSample extends AsyncDisposable {
  /** The compiled stampede, which starts its shops beside it. */
  readonly stampede: string;
}

/**
 * Compiles library, sample and stampede into a directory of its own, as the package would have them. Nobody else builds or
 * removes it meanwhile, as happens to `dist`.
 */
export async function compileSample(): Promise<CompiledSample> {
  const directory = await mkdtemp(join(tmpdir(), 'compiled-sample-'));
  await cp(join(ROOT, 'package.json'), join(directory, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  await compile(join(ROOT, 'lib'), join(directory, 'dist/esm'));
  for (const folder of ['sample-app', 'servers', 'stampede']) {
    await compile(join(ROOT, folder), join(directory, 'dist', folder));
  }
  return {
    stampede: join(directory, 'dist/stampede/main.js'),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}

async function compile(from: string, to: string): Promise<void> {
  const files = await readdir(from, { recursive: true });
  const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  await Promise.all(
    sources.map(async (file) => {
      const target = join(to, file.replace(/\.ts$/u, '.js'));
      const { code } = await transformFile(join(from, file), OPTIONS);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, code);
    }),
  );
}
