/** Lets plain Node run the TypeScript of lib and test as jest does: compiled alone, with jest's own settings, nothing built. */
import { transform } from '@swc/core';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import jestConfig from '../../jest.config.mjs';

/** Sub-paths that are no backend. */
const ROOMS = ['core', 'testing', 'conformance', 'inspector', 'metrics', 'nestjs-locks', 'opentelemetry', 'terminus'];
const root = new URL('../../', import.meta.url);
const [, swcOptions] = jestConfig.transform['^.+\\.ts$'];

export async function resolve(specifier, context, nextResolve) {
  const url = sourceOf(specifier, context.parentURL);
  return url === undefined ? nextResolve(specifier, context) : { url, format: 'module', shortCircuit: true };
}

export async function load(url, context, nextLoad) {
  if (!url.startsWith(root.href) || !url.endsWith('.ts')) return nextLoad(url, context);
  const { code } = await transform(await readFile(new URL(url), 'utf8'), {
    ...swcOptions,
    filename: fileURLToPath(url),
  });
  return { format: 'module', source: code, shortCircuit: true };
}

/** The same mapping as `moduleNameMapper` in jest.config.mjs. */
function sourceOf(specifier, parent) {
  const [, inside] = /^nestjs-distributed-lock(?:\/(.+))?$/.exec(specifier) ?? [];
  if (specifier === 'nestjs-distributed-lock') return new URL('lib/index.ts', root).href;
  if (ROOMS.includes(inside)) return new URL(`lib/${inside}/index.ts`, root).href;
  if (inside !== undefined) return new URL(`lib/backends/${inside}/index.ts`, root).href;
  if (specifier.endsWith('.ts')) return new URL(specifier, parent).href;
  if (!/^\.{1,2}\/.*\.js$/.test(specifier) || !parent?.endsWith('.ts')) return undefined;
  const source = new URL(specifier.replace(/\.js$/, '.ts'), parent);
  return existsSync(source) ? source.href : undefined;
}
