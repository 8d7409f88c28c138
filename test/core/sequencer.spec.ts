import { generateKeyPairSync, sign } from 'node:crypto';
import { LockConfigurationError, LockLostError, LockService, readSequencer } from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { storeLike } from './store-like.js';

describe('sequencers', () => {
  let clock: ManualClock;
  let backend: TestLockBackend;
  let locks: LockService;

  beforeEach(() => {
    clock = new ManualClock();
    backend = new TestLockBackend({ clock });
    locks = new LockService(backend, { clock, namespace: 'shop' });
  });
  afterEach(() => locks.close());

  const encoded = (fields: unknown): string => `lock1.${Buffer.from(JSON.stringify(fields)).toString('base64url')}`;

  it('can be read: which acquisition of which key it is', async () => {
    const lock = await locks.acquire('a "key" \u0001 ü');
    const { fencingToken } = lock;
    const sequencer = { backend: 'test', key: 'shop:a "key" \u0001 ü', fencingToken, owner: expect.any(String) };
    expect(readSequencer(lock.sequencer())).toEqual(sequencer);
    await expect(locks.checkSequencer(lock.sequencer())).resolves.toBe('valid');
  });

  it('have room for the longest key there is, in the letters of a header', async () => {
    const service = new LockService(backend, { clock });
    const lock = await service.acquire('\u0001'.repeat(4_096));
    expect(lock.sequencer()).toMatch(/^[\w.-]+$/u);
    await expect(service.checkSequencer(lock.sequencer())).resolves.toBe('valid');
  });

  it.each([
    [undefined],
    [7],
    [''],
    ['lock1.'],
    ['lock0.W10'],
    [`lock1.${'A'.repeat(40_000)}`],
    [encoded(null)],
    [encoded({ 0: 'test', 1: 'k', 2: '1', 3: 'x' })],
    [encoded(['test', '', '1', 'x'])],
    [encoded(['test', 'k'.repeat(4_097), '1', 'x'])],
    [encoded(['test', '\ud800', '1', 'x'])],
    [encoded(['test', ['k'], '1', 'x'])],
    [encoded(['test', 'k', 1, 'x'])],
    [encoded(['test', 'k', '0', 'x'])],
    [encoded(['test', 'k', '-1', 'x'])],
    [encoded(['test', 'k', '1'.repeat(20), 'x'])],
    [encoded(['test', 'k', '1', ''])],
    [encoded(['test', 'k', '1', 'x\n'])],
    [encoded(['test', 'k', '1', 'x'.repeat(101)])],
    [encoded(['test', 'k', '1', 'x', 'more'])],
    [`${encoded(['test', 'k', '1', 'x'])}=`],
    [encoded(['test', 'k', '1', 'x']).replace('lock1.', 'lock1.ICAg')],
  ])('are refused when they are none: %j', async (text) => {
    expect(readSequencer(text)).toBeUndefined();
    backend.breakDown();
    // Nothing is asked of the backend.
    await expect(locks.checkSequencer(String(text))).resolves.toBe('unknown');
  });

  it('are signed: with another token, key or owner they are none, nor with the signature of another', async () => {
    const [one, two] = [(await locks.acquire('one')).sequencer(), (await locks.acquire('two')).sequencer()];
    const fields = (text: string): string[] =>
      JSON.parse(Buffer.from(text.slice(6), 'base64url').toString()) as string[];
    expect(encoded(fields(one))).toBe(one);
    for (let index = 0; index < 6; index += 1) {
      const [ours, theirs] = [fields(one), fields(two)];
      if (ours[index] === theirs[index]) ours[index] = index === 4 ? 'A'.repeat(43) : `${ours[index]}x`;
      else ours[index] = theirs[index] ?? '';
      expect(readSequencer(encoded(ours))).toBeUndefined();
      await expect(locks.checkSequencer(encoded(ours))).resolves.toBe('unknown');
    }
    const [token] = [fields(one)[2]];
    const ahead = fields(one).with(2, String(BigInt(token ?? 0) + 1n));
    await expect(locks.checkSequencer(encoded(ahead))).resolves.toBe('unknown');
  });

  it('are signed by the process that the owner names: the key of another vouches for nothing', async () => {
    const shown = readSequencer((await locks.acquire('k')).sequencer());
    const content = ['test', 'shop:k', String((shown?.fencingToken ?? 0n) + 1n), shown?.owner ?? ''];
    const forger = generateKeyPairSync('ed25519');
    const { x: publicKey } = forger.publicKey.export({ format: 'jwk' });
    const signature = sign(null, Buffer.from(JSON.stringify(content)), forger.privateKey).toString('base64url');
    const forged = encoded([...content, publicKey, signature]);
    expect(readSequencer(forged)).toBeUndefined();
    await expect(locks.checkSequencer(forged)).resolves.toBe('unknown');
  });

  it('keep a lease that was shown from being handed on, and no other', async () => {
    const from: string[] = [];
    const service = new LockService(backend, { clock, observers: [{ acquired: (event) => from.push(event.from) }] });
    const pass = async (show: boolean): Promise<void> => {
      const lock = await service.acquire('k');
      const next = service.acquire('k');
      if (show) expect(lock.sequencer()).toBe(lock.sequencer());
      await lock.release();
      await (await next).release();
    };
    await pass(false);
    await pass(true);
    expect(from).toEqual(['backend', 'hand-off', 'backend', 'backend']);
  });

  it('are not to be had of a lock that was lost or released, nor where nobody could check them', async () => {
    const [lost, released] = [await locks.acquire('lost'), await locks.acquire('released')];
    backend.revoke('shop:lost');
    expect(() => lost.sequencer()).toThrow(LockLostError);
    await released.release();
    expect(() => released.sequencer()).toThrow(LockConfigurationError);

    const blind = new LockService(storeLike(backend, { name: 'blind' }), { clock });
    const lock = await blind.acquire('k');
    expect(() => lock.sequencer()).toThrow('locks of blind have no sequencers');
    await expect(blind.checkSequencer(encoded(['blind', 'k', '1', 'x']))).resolves.toBe('unknown');
  });

  it('are checked by a service that is open, and an answer that does not come is an error', async () => {
    const shown = (await locks.acquire('k')).sequencer();
    backend.breakDown();
    await expect(locks.checkSequencer(shown)).rejects.toMatchObject({ code: 'LOCK_BACKEND', key: 'shop:k' });
    backend.repair();
    await expect(locks.checkSequencer(shown, { key: 'k' })).resolves.toBe('valid');
    await expect(locks.checkSequencer(shown, { key: 'shop:k' })).resolves.toBe('unknown');
    locks.stop();
    await expect(locks.checkSequencer(shown)).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
  });
});
