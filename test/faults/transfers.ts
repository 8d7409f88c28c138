import { LockBackendError, LockHandle } from 'nestjs-distributed-lock/core';
import { type Contract, eventually, failureOf, type Suite } from '../support/index.js';
import { ProxiedBackend } from './proxied-backend.js';

const LONG = { ttlMs: 20_000, waitMs: 10_000 };
const WITHIN = { withinMs: 20_000 };
const LABEL = 'who-adopts-it';
/** Each write of an adoption has the label of the adopter, as a text or in hexadecimal. */
const WRITE = new RegExp(`${LABEL}|${Buffer.from(LABEL).toString('hex')}`, 'iu');

/** A transfer whose requests or replies are lost. */
export function transfers({ harness, it }: Suite): void {
  if (harness.transfers !== true) return;

  it('A13: reply of adopt lost, command executed: asked again, and adopted once', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const { key, ours, theirs } = await adopterBehind(world, contract);
    const ticket = await (await ours.acquire(key, LONG)).transfer(WITHIN);
    const lost = world.proxy.dropReplyAfter(WRITE);
    const adopting = theirs.adopt(ticket, LONG);
    await lost;
    const adopted = await adopting;
    expect(adopted.isHeld).toBe(true);
    expect(await failureOf(ours.adopt(ticket))).toMatchObject({ reason: 'transferred' });
    await adopted.release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });

  it('A13: the same without waiting: the lock or an error, and the ghost is gone long before its TTL', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const { key, ours, theirs } = await adopterBehind(world, contract);
    const ticket = await (await ours.acquire(key, LONG)).transfer(WITHIN);
    const lost = world.proxy.dropReplyAfter(WRITE);
    const adopting = theirs.adopt(ticket, { ...LONG, waitMs: 0 }).catch((error: unknown) => error);
    await lost;
    const outcome = await adopting;
    if (outcome instanceof LockHandle) await outcome.release();
    else expect(outcome).toBeInstanceOf(LockBackendError);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]), { withinMs: 5_000 });
    await (await ours.acquire(key, LONG)).release();
  });

  it('A14: reply of transfer lost: an error, no ticket, and the key is free', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const service = await world.proxied(key);
    const lock = await service.acquire(key, LONG);
    world.proxy.drop('down');
    const transferring = failureOf(lock.transfer(WITHIN));
    const error = await transferring;
    world.proxy.resume();
    expect(error).toBeInstanceOf(LockBackendError);
    expect(lock.state).toBe('released');
    await (await (await contract.service()).acquire(key, LONG)).release();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });
}

/** Adopts once without a fault: the lost reply must not be the server's, that it does not know the script yet. */
async function adopterBehind(world: ProxiedBackend, contract: Contract) {
  const [key, ours] = [contract.key(), await contract.service()];
  const theirs = await world.proxied(key, { label: LABEL });
  const ticket = await (await ours.acquire(key, LONG)).transfer(WITHIN);
  await (await theirs.adopt(ticket, LONG)).release();
  return { key, ours, theirs };
}
