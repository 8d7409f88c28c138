import assert from 'node:assert/strict';
import { LONG_TTL_MS, type CheckGroup } from './check-context.js';

const MAX_KEY_BYTES = 4_096;

const ENDINGS = [' ', '\n', '\r\n', '\t', '\0', '/a', '/a/', ':a', '*', '?', '%', '_', '\\', '%20', "'; drop table"];
const NON_ASCII_ENDINGS = ['caf\u00e9', 'cafe\u0301', '\u4f60\u597d', '\u{1f512}'];

const createSimilarKeys = (key: string): readonly string[] => [
  key,
  key.toUpperCase(),
  key.toLowerCase(),
  ` ${key}`,
  `${key}/../${key}`,
  `{${key}}`,
  `{${key}}a`,
  `[${key}]`,
  `"${key}"`,
  `\u200f${key}`,
  ...[...ENDINGS, ...NON_ASCII_ENDINGS].map((ending) => key + ending),
];

const createLongKeys = (key: string): readonly string[] =>
  [250, 255, 256, 1_000, MAX_KEY_BYTES].flatMap((bytes) => {
    const commonStart = key.padEnd(bytes - 1, 'k');
    return [`${commonStart}1`, `${commonStart}2`];
  });

/** Keys that a store confuses when it uses them as property names of a plain object, as numbers or as patterns. */
const RESERVED_WORDS = ['__proto__', 'constructor', 'undefined', 'null', '0', '*', '/', '..'];

export const keyChecks: CheckGroup = {
  'keeps keys apart that differ in a blank, a letter case or a Unicode form, and takes any text': async (context) => {
    const [store, otherStore] = await context.openTwoStores();
    const similarKeys = createSimilarKeys(`Aa${context.newKey().replace(/\W/gu, '')}`);
    const leases = [];
    for (const key of similarKeys) leases.push(await context.acquire(store, key, { ttlMs: LONG_TTL_MS }));
    // Another process that runs these checks on the same server may hold a reserved word.
    for (const word of RESERVED_WORDS)
      leases.push(await context.acquireEventually(store, word, { ttlMs: LONG_TTL_MS }));
    for (const key of [...similarKeys, ...RESERVED_WORDS]) await context.assertRefused(otherStore, key);
    for (const { key, owner } of leases) {
      assert.equal(await store.release(key, owner), true, `${JSON.stringify(key)} could not be released`);
    }
  },

  'takes keys of up to 4,096 bytes, and keeps those apart that differ in the last': async (context) => {
    const [store, otherStore] = await context.openTwoStores();
    for (const key of createLongKeys(context.newKey())) {
      const { owner } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
      await context.assertRefused(otherStore, key);
      assert.equal(await store.renew(key, owner, LONG_TTL_MS), true, `${key.length} bytes could not be renewed`);
    }
  },

  'takes what a holder says of itself as data': async (context) => {
    const [store, otherStore] = await context.openTwoStores();
    const oddLabel = `it's "a" \\ label | with; everything,\r\n\t$1 %s {} <b>\u{1f512}\u4f60`;
    for (const label of [oddLabel, oddLabel.padEnd(1_000, '.')]) {
      const key = context.newKey();
      const metadata = { host: 'some "host"', pid: 42, label };
      const { owner, ttlMs } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS, metadata });
      const { attempt } = await context.tryAcquire(otherStore, key);
      assert.ok(!attempt.acquired, 'two owners have the key');
      if (attempt.holder) {
        const { host, pid, label: reportedLabel } = attempt.holder;
        assert.deepEqual({ host, pid, label: reportedLabel }, metadata);
      }
      assert.equal(await store.renew(key, owner, ttlMs), true, 'the holder could not renew');
      assert.equal(await store.release(key, owner), true, 'the holder could not release');
    }
  },
};
