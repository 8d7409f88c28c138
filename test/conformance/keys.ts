import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { type Contract, failureOf, type Suite } from '../support/index.js';

const TTL_MS = 20_000;

/** Every one a key of its own, for every backend. */
const KEYS: readonly string[] = [
  'plain',
  'Plain',
  'plain ',
  ' plain',
  'a',
  'a/b',
  'a/../b',
  '../b',
  '/',
  'a:b',
  'a:b:q',
  '{a}',
  '{a}b',
  '{',
  '}',
  '*',
  '?',
  '%',
  '_',
  '[ab]',
  "it's",
  '"quoted"',
  'back\\slash',
  'semi;colon -- drop table',
  'line\nbreak',
  'line\r\nbreak',
  'tab\tbed',
  'nul\0byte',
  'caf\u00e9',
  'cafe\u0301',
  '\u4f60\u597d',
  '\u{1f512}',
  '\u200fright-to-left',
  '__proto__',
  'constructor',
  'undefined',
  'null',
  '0',
  '1'.repeat(250),
  '1'.repeat(251),
  'k'.repeat(1_000),
  `${'k'.repeat(999)}l`,
  '\u4f60'.repeat(1_000),
];

const REFUSED: readonly (readonly [string, unknown])[] = [
  ['an empty one', ''],
  ['undefined', undefined],
  ['null', null],
  ['a number', 42],
  ['NaN', Number.NaN],
  ['an array', ['a']],
  ['an empty array', []],
  ['an object', {}],
  ['one of 2 MB', 'x'.repeat(2_000_000)],
  ['one of 4,097 bytes', 'x'.repeat(4_097)],
  ['a lone surrogate', 'a\ud800'],
];

export function keys({ harness, it, alone }: Suite): void {
  // Its keys are fixed, and promises to stores of others have some of them, too.
  alone('may be any text, and are kept apart to the byte', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const locks = [];
    const kept = KEYS.filter((key) => harness.keeps?.(key) ?? true);
    for (const key of kept) locks.push({ key, lock: await ours.tryAcquire(key, { ttlMs: TTL_MS }) });
    expect(locks.filter(({ lock }) => lock === null).map(({ key }) => key)).toEqual([]);
    for (const key of kept) {
      await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    }
    for (const { lock } of locks) await lock?.release();
    for (const key of kept) {
      await expect(harness.leftovers(key)).resolves.toEqual([]);
    }
  });

  const refused = async (contract: Contract, key: unknown): Promise<void> => {
    const service = await contract.service();
    // Not every caller has a compiler.
    const untyped: { acquire(key: unknown): Promise<unknown> } = service;
    const error = await failureOf(untyped.acquire(key));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error).length).toBeLessThan(500);
  };
  for (const [what, key] of REFUSED) {
    it(`of no backend are refused before anything is asked: ${what}`, (contract) => refused(contract, key));
  }
}
