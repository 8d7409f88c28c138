/** Lets plain Node run the TypeScript of lib and test as ES modules, as jest does. */
import { fileURLToPath, pathToFileURL } from 'node:url';

import { compiled, sourceOf } from './ts-sources.cjs';

const root = new URL('../../', import.meta.url).href;

export async function resolve(specifier, context, nextResolve) {
  const url = urlOf(specifier, context.parentURL);
  return url === undefined ? nextResolve(specifier, context) : { url, format: 'module', shortCircuit: true };
}

export async function load(url, context, nextLoad) {
  if (!url.startsWith(root) || !url.endsWith('.ts')) return nextLoad(url, context);
  return { format: 'module', source: compiled(fileURLToPath(url), 'es6'), shortCircuit: true };
}

function urlOf(specifier, parent) {
  if (specifier.endsWith('.ts')) return new URL(specifier, parent).href;
  const source = sourceOf(specifier, parent?.startsWith('file:') ? fileURLToPath(parent) : undefined);
  return source === undefined ? undefined : pathToFileURL(source).href;
}
