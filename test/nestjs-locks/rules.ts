import assert from 'node:assert/strict';
import { pause, systemClock } from 'nestjs-distributed-lock/core';
import type { LockStore } from 'nestjs-distributed-lock/nestjs-locks';

/** Where the rules are checked. */
export interface World {
  /** One more store on the same server, as another process has it. */
  store(): Promise<LockStore>;
  /** A key that no other rule has. */
  key(): string;
  /** A TTL that may be waited for. */
  readonly ttlMs: number;
  /** How much later than its TTL a lock may end. */
  readonly lateMs: number;
}

export type Rule = (world: World) => Promise<void>;

const LONG_MS = 60_000;
const MONTH_MS = 30 * 86_400_000;
const CALLERS = 16;
const OWNERS = Array.from({ length: CALLERS }, (_, index) => `owner ${index}`);

/** All that `@nestjs/locks` asks of a store, in our words. */
export const RULES: Readonly<Record<string, Rule>> = {
  'gives a free key to one owner, once': async (world) => {
    const [ours, theirs] = [await world.store(), await world.store()];
    const key = world.key();
    await take(ours, key, 'a');
    await refuse(theirs, key, 'b');
    await refuse(ours, key, 'a');
    await refuse(theirs, key, 'a');
    assert.equal(await theirs.release(key, 'a'), true, 'another process may release for the owner');
  },

  'lets the owner release, and raises the token': async (world) => {
    const [ours, theirs] = [await world.store(), await world.store()];
    const key = world.key();
    assert.equal(await ours.release(key, 'a'), false, 'a key without a lock');
    const first = await take(ours, key, 'a');
    assert.equal(await theirs.release(key, 'b'), false, 'by another owner');
    await refuse(theirs, key, 'b');
    assert.equal(await ours.release(key, 'a'), true, 'by the owner');
    assert.equal(await ours.release(key, 'a'), false, 'of what is released');
    assert.ok((await take(theirs, key, 'b')) > first, 'the token grows');
  },

  'renews for the owner only, and only what is there': async (world) => {
    const [ours, theirs] = [await world.store(), await world.store()];
    const key = world.key();
    assert.equal(await ours.renew(key, 'a', LONG_MS), false, 'a key without a lock');
    await take(ours, key, 'a', world.ttlMs);
    assert.equal(await theirs.renew(key, 'b', LONG_MS), false, 'by another owner');
    assert.equal(await theirs.renew(key, 'a', LONG_MS), true, 'by the owner, in another process');
    await expiry(world);
    await refuse(theirs, key, 'b');
    assert.equal(await ours.renew(key, 'a', world.ttlMs), true, 'a renewal may shorten');
    await expiry(world);
    assert.equal(await ours.renew(key, 'a', LONG_MS), false, 'of what has expired');
    await take(theirs, key, 'b');
  },

  'ends a lock after its TTL, not before': async (world) => {
    const [ours, theirs] = [await world.store(), await world.store()];
    const key = world.key();
    const since = performance.now();
    await take(ours, key, 'a', world.ttlMs);
    const answeredAt = performance.now();
    while (!(await theirs.acquire(key, 'b', LONG_MS)).acquired) await pause(systemClock, 20);
    assert.ok(performance.now() - since >= world.ttlMs - 1, 'not before');
    assert.ok(performance.now() - answeredAt <= world.ttlMs + world.lateMs, 'not much later');
  },

  'fences off an owner whose lock has expired': async (world) => {
    const [ours, theirs] = [await world.store(), await world.store()];
    const key = world.key();
    const former = await take(ours, key, 'former', world.ttlMs);
    await expiry(world);
    assert.equal(await ours.release(key, 'former'), false, 'a release after the expiry');
    const next = await take(theirs, key, 'next');
    assert.ok(next > former, 'the token grows');
    assert.equal(await ours.renew(key, 'former', LONG_MS), false, 'a renewal by the former owner');
    assert.equal(await ours.release(key, 'former'), false, 'a release by the former owner');
    await refuse(ours, key, 'former');
    assert.equal(await theirs.release(key, 'next'), true, 'a release by the next owner');
  },

  'raises the token also for an owner who comes back': async (world) => {
    const store = await world.store();
    const key = world.key();
    const tokens: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      tokens.push(await take(store, key, 'a'));
      assert.equal(await store.release(key, 'a'), true);
    }
    tokens.push(await take(store, key, 'a', world.ttlMs));
    await expiry(world);
    tokens.push(await take(store, key, 'a'));
    assertGrowing(tokens);
  },

  'keeps keys and owners apart exactly': async (world) => {
    const store = await world.store();
    const long = 'ü🔒x'.repeat(125);
    const texts = [
      'k',
      'K',
      'k ',
      ' k',
      'k\t',
      'k\n',
      'a:b',
      'a%3Ab',
      'a}b',
      '{a}b',
      'a|b',
      'k\0',
      'k\\',
      "k'",
      '*',
      '/',
      '.',
    ];
    texts.push('\u00e9', 'e\u0301', 'ключ', 'ß', 'ss', 'ı', 'i', 'İ', '__proto__', 'constructor', 'toString', long);
    texts.push(`${long.slice(0, -1)}y`, `y${long.slice(1)}`);
    const base = world.key();
    const keys = texts.map((text) => (text === long ? text : `${base}${text}`.slice(-500)));
    await Promise.all(keys.map((key, index) => take(store, key, texts[index] ?? '')));
    for (const [index, key] of keys.entries()) {
      const owner = texts[index] ?? '';
      const others = texts.filter((text) => text !== owner);
      assert.deepEqual(await some(others, (other) => store.renew(key, other, LONG_MS)), [], `another owner of ${key}`);
      assert.equal(await store.release(key, owner), true, `the owner of ${key}`);
    }
  },

  'takes every text as an owner, and a TTL of 30 days': async (world) => {
    const store = await world.store();
    for (const owner of ['', ' ', 'a|b', '\ud800', '\udbff', '🔒'.repeat(1_000)]) {
      const key = world.key();
      await take(store, key, owner, MONTH_MS);
      for (const other of ['\ufffd', 'a', 'a|', ' |']) assert.equal(await store.release(key, other), false);
      assert.equal(await store.renew(key, owner, MONTH_MS), true);
      await refuse(store, key, 'b');
      assert.equal(await store.release(key, owner), true);
    }
  },

  'lets one of sixteen win a free key': async (world) => {
    await race(await stores(world), world.key());
  },

  'lets one of sixteen calls of the same owner win': async (world) => {
    const [store, key] = [await world.store(), world.key()];
    const answers = await Promise.all(OWNERS.map(() => store.acquire(key, 'a', LONG_MS)));
    assert.equal(answers.filter(({ acquired }) => acquired).length, 1);
  },

  'lets one of sixteen take over what has expired, and revives nothing': async (world) => {
    const all = await stores(world);
    const key = world.key();
    const [first] = all;
    const former = await take(first, key, 'former', world.ttlMs);
    await expiry(world);
    const [renewed, { token }] = await Promise.all([first.renew(key, 'former', LONG_MS), race(all, key)]);
    assert.equal(renewed, false, 'a renewal in the race');
    assert.ok(token > former, 'the token grows');
  },

  'lets one at most win beside a release': async (world) => {
    const all = await stores(world);
    const key = world.key();
    await take(all[0], key, 'former');
    const [released, ...answers] = await Promise.all([all[0].release(key, 'former'), ...asked(all, key)]);
    assert.equal(released, true);
    const winners = answers.filter(({ acquired }) => acquired).length;
    assert.ok(winners <= 1, `${winners} have the key`);
    assert.equal((await all[0].acquire(key, 'late', LONG_MS)).acquired, winners === 0);
  },

  'raises the token in rounds of races': async (world) => {
    const all = await stores(world);
    const key = world.key();
    const tokens: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const { token, owner } = await race(all, key);
      tokens.push(token);
      assert.equal(await all[1].release(key, owner), true);
    }
    assertGrowing(tokens);
  },
};

/** @returns the token */
async function take(store: LockStore, key: string, owner: string, ttlMs = LONG_MS): Promise<number> {
  const answer = await store.acquire(key, owner, ttlMs);
  assert.ok(answer.acquired, `${JSON.stringify(key)} should be free for ${JSON.stringify(owner)}`);
  assert.ok(Number.isSafeInteger(answer.fencingToken) && answer.fencingToken > 0, `token ${answer.fencingToken}`);
  return answer.fencingToken;
}

async function refuse(store: LockStore, key: string, owner: string): Promise<void> {
  assert.deepEqual(
    await store.acquire(key, owner, LONG_MS),
    { acquired: false },
    `${key} should be refused to ${owner}`,
  );
}

/** A lock of `ttlMs` has ended then, by every clock. */
function expiry({ ttlMs, lateMs }: World): Promise<unknown> {
  return pause(systemClock, ttlMs + lateMs);
}

async function stores(world: World): Promise<readonly [LockStore, LockStore]> {
  return [await world.store(), await world.store()];
}

const asked = (all: readonly [LockStore, LockStore], key: string) =>
  OWNERS.map((owner, index) => (all[index % 2] ?? all[0]).acquire(key, owner, LONG_MS));

async function race(all: readonly [LockStore, LockStore], key: string) {
  const answers = await Promise.all(asked(all, key));
  const winners = answers.flatMap((answer, index) =>
    answer.acquired ? [{ token: answer.fencingToken, owner: OWNERS[index] ?? '' }] : [],
  );
  const [winner] = winners;
  assert.ok(winner && winners.length === 1, `${winners.length} of ${CALLERS} have the key`);
  return winner;
}

async function some(texts: readonly string[], holds: (text: string) => Promise<boolean>): Promise<string[]> {
  const answers = await Promise.all(texts.map((text) => holds(text)));
  return texts.filter((_, index) => answers[index]);
}

function assertGrowing(tokens: readonly number[]): void {
  for (const [index, token] of tokens.slice(1).entries()) assert.ok(token > (tokens[index] ?? 0), tokens.join(', '));
}
