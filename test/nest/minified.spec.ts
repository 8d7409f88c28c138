import { Controller, Injectable, Param, Post, type Type } from '@nestjs/common';
import { transformSync } from '@swc/core';
import { compileFunction } from 'node:vm';
import { Locked, LockKey } from 'nestjs-distributed-lock';
import { inMemory, context } from './apps.js';
import { Crossing } from './crossing.js';

type Cells = Record<string, (...args: unknown[]) => Promise<unknown>>;
/** The file is that of the class, by the name that the runtime has for it. */
type Build = Readonly<{ minify: boolean; metadata: boolean; mangle?: boolean; file?: string }>;

/** The class that a build of `body` leaves, with the decorators of this package. */
function built(body: string, { minify, metadata, mangle = minify, file = '/app/dist/main.js' }: Build): Type<Cells> {
  const source = `import { Controller, Injectable, Locked, LockKey, Param, Post } from 'it'; @Injectable() export class Cells { ${body} }`;
  const transform = { legacyDecorator: true, decoratorMetadata: metadata };
  const parser = { syntax: 'typescript', decorators: true } as const;
  const { code } = transformSync(source, {
    jsc: { parser, transform, target: 'es2022', ...(mangle ? { minify: { mangle } } : {}) },
    module: { type: 'commonjs' },
    minify,
  });
  const exports: { Cells?: Type<Cells> } = {};
  const run = compileFunction(code, ['exports', 'require'], { filename: file });
  Reflect.apply(run, undefined, [exports, () => ({ Controller, Injectable, Locked, LockKey, Param, Post })]);
  if (!exports.Cells) throw new Error(`nothing was exported by ${code}`);
  return exports.Cells;
}

const PLAIN = { minify: false, metadata: true };
const MINIFIED = { minify: true, metadata: true };
/** As esbuild leaves it, which writes no types down. */
const UNTYPED = { minify: true, metadata: false };

async function keysOf(
  body: string,
  build: Build,
  call: (cells: Cells) => Promise<unknown>,
): Promise<readonly string[]> {
  const crossing = new Crossing();
  const classRef = built(body, build);
  const app = await context({ imports: [inMemory(crossing)], providers: [classRef] });
  await call(app.get(classRef));
  return crossing.keys;
}

const MOVE = `@Locked('cell_:t') async move(t: string, e: string): Promise<string> { return e + e + e + t }`;
const move = (cells: Cells): Promise<unknown> => Promise.resolve(cells['move']?.('FIRST', 'SECOND'));

describe.each([
  ['types', MINIFIED],
  ['no types', UNTYPED],
])('the name of an argument in a minified build with %s', (_, build) => {
  it.each([
    // The names change places there: what is used most gets the first one, which is e.
    ['t', MOVE],
    ['id', `@Locked('cell_:id') async move(id: string, count: number): Promise<string> { return id + count + count }`],
    ['sku', `@Locked('cell_:sku') async move(cell: string, sku: string): Promise<string> { return sku + cell + cell }`],
  ])('stops the application, which says what to write for :%s', async (name, body) => {
    const advice = `This build looks minified, as by esbuild or terser, which renames arguments: write @LockKey('${name}') before it`;
    await expect(keysOf(body, build, move)).rejects.toThrow(advice);
  });

  it('does not matter where @LockKey says it', async () => {
    const body = `@Locked('cell_:t') async move(@LockKey('t') t: string, e: string): Promise<string> { return e + e + t }`;
    expect(await keysOf(body, build, move)).toEqual(['cell_FIRST']);
  });
});

it('the name of an argument works in a build that keeps it', async () => {
  const body = `@Locked('cell_:id') async move(id: string, e: string): Promise<string> { return e + e + id }`;
  expect(await keysOf(body, PLAIN, move)).toEqual(['cell_FIRST']);
  expect(await keysOf(body, { ...PLAIN, metadata: false }, move)).toEqual(['cell_FIRST']);
});

it.each(['file:///app/src/main.ts', '/app/src/main.cts', 'C:\\app\\src\\main.mts', 'file:///app/src/main.ts?tsx=1'])(
  'the name of an argument works in %s, which tsx compiles to something without spaces',
  async (file) => {
    const body = `@Locked('cell_:id') async move(id: string, to = 'x'): Promise<string> { return id + to }`;
    expect(await keysOf(body, { minify: true, mangle: false, metadata: false, file }, move)).toEqual(['cell_FIRST']);
  },
);

it('the name of an argument is not relied on where it has one letter', async () => {
  await expect(keysOf(MOVE, PLAIN, move)).rejects.toThrow('An argument of one letter may be named by a minifier');
});
