/** TypeScript of lib and test for plain Node and for jest: compiled alone, nothing built. */
const { createHash } = require('node:crypto');
const { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const { ENTRY_POINTS } = require('../../scripts/entry-points.cjs');

const root = path.resolve(__dirname, '../..');

const swcOptions = {
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
    keepClassNames: true,
  },
  module: { type: 'es6' },
  sourceMaps: 'inline',
};

/** Compiled files, by all that they are made of. */
const cache = path.join(root, 'node_modules/.cache/typescript');

/** The JavaScript of a file. @param type of module: `es6` or `commonjs` */
function compiled(filename, type) {
  const source = readFileSync(filename, 'utf8');
  const options = { ...swcOptions, module: { type }, filename };
  const { version } = require('@swc/core/package.json');
  const key = createHash('sha256')
    .update(JSON.stringify([version, options, source]))
    .digest('hex');
  const kept = path.join(cache, `${key}.js`);
  if (existsSync(kept)) return readFileSync(kept, 'utf8');
  const { code } = require('@swc/core').transformSync(source, options);
  mkdirSync(cache, { recursive: true });
  // Other processes do the same.
  writeFileSync(`${kept}.${process.pid}`, code);
  renameSync(`${kept}.${process.pid}`, kept);
  return code;
}

/** Returns the TypeScript file that an import names, as `moduleNameMapper` of jest.config.mjs does; `undefined` for other modules. */
function sourceOf(specifier, parent) {
  const [ownName, subPath = ''] = /^nestjs-distributed-lock(\/.+)?$/.exec(specifier) ?? [];
  const entryPoint = ownName && ENTRY_POINTS[`.${subPath}`];
  if (entryPoint) return path.join(root, entryPoint);
  if (!/^\.{1,2}\/.*\.js$/.test(specifier) || !parent?.endsWith('.ts')) return undefined;
  const source = path.resolve(path.dirname(parent), specifier.replace(/\.js$/, '.ts'));
  return existsSync(source) ? source : undefined;
}

module.exports = { compiled, sourceOf, swcOptions };
