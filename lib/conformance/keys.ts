import assert from 'node:assert/strict';
import { LONG_TTL_MS, type Theme } from './trial.js';

const MAX_KEY_BYTES = 4_096;

const ENDINGS = [' ', '\n', '\r\n', '\t', '\0', '/a', '/a/', ':a', '*', '?', '%', '_', '\\', '%20', "'; drop table"];
const FOREIGN_ENDINGS = ['caf\u00e9', 'cafe\u0301', '\u4f60\u597d', '\u{1f512}'];

/** Every one a key of its own. `it` is random, and of letters and digits. */
const alike = (it: string): readonly string[] => [
  it,
  it.toUpperCase(),
  it.toLowerCase(),
  ` ${it}`,
  `${it}/../${it}`,
  `{${it}}`,
  `{${it}}a`,
  `[${it}]`,
  `"${it}"`,
  `\u200f${it}`,
  ...[...ENDINGS, ...FOREIGN_ENDINGS].map((ending) => it + ending),
];

/** They begin alike, and differ in the last letter. */
const long = (it: string): readonly string[] =>
  [250, 255, 256, 1_000, MAX_KEY_BYTES].flatMap((bytes) => {
    const most = it.padEnd(bytes - 1, 'k');
    return [`${most}1`, `${most}2`];
  });

/** Those on which a plain object, or a number, would stumble. */
const WORDS = ['__proto__', 'constructor', 'undefined', 'null', '0', '*', '/', '..'];

export const keys: Theme = {
  'keeps keys apart that differ in a blank, a letter case or a Unicode form, and takes any text': async (trial) => {
    const [ours, theirs] = await trial.two();
    const texts = alike(`Aa${trial.key().replace(/\W/gu, '')}`);
    const leases = [];
    for (const text of texts) leases.push(await trial.win(ours, text, { ttlMs: LONG_TTL_MS }));
    // Somebody else may run these checks on the same server.
    for (const word of WORDS) leases.push(await trial.winSoon(ours, word, { ttlMs: LONG_TTL_MS }));
    for (const text of [...texts, ...WORDS]) await trial.lose(theirs, text);
    for (const { key, owner } of leases) {
      assert.equal(await ours.release(key, owner), true, `${JSON.stringify(key)} could not be released`);
    }
  },

  'takes keys of up to 4,096 bytes, and keeps those apart that differ in the last': async (trial) => {
    const [ours, theirs] = await trial.two();
    for (const text of long(trial.key())) {
      const { owner } = await trial.win(ours, text, { ttlMs: LONG_TTL_MS });
      await trial.lose(theirs, text);
      assert.equal(await ours.renew(text, owner, LONG_TTL_MS), true, `${text.length} bytes could not be renewed`);
    }
  },

  'takes what a holder says of itself as data': async (trial) => {
    const [ours, theirs] = await trial.two();
    const odd = `it's "a" \\ label | with; everything,\r\n\t$1 %s {} <b>\u{1f512}\u4f60`;
    for (const label of [odd, odd.padEnd(1_000, '.')]) {
      const key = trial.key();
      const metadata = { host: 'some "host"', pid: 42, label };
      const { owner, ttlMs } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS, metadata });
      const { attempt } = await trial.ask(theirs, key);
      assert.ok(!attempt.acquired, 'two owners have the key');
      if (attempt.holder) {
        const { host, pid, label: said } = attempt.holder;
        assert.deepEqual({ host, pid, label: said }, metadata);
      }
      assert.equal(await ours.renew(key, owner, ttlMs), true, 'the holder could not renew');
      assert.equal(await ours.release(key, owner), true, 'the holder could not release');
    }
  },
};
