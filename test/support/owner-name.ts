import { LockService, readSequencer } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';

/** The beginning of all owners of this process, which no error or message may show. */
export async function ownerName(): Promise<string> {
  await using locks = new LockService(memory());
  const lock = await locks.acquire('key');
  const name = readSequencer(lock.sequencer())?.owner.split('.')[0];
  if (name?.length !== 22) throw new Error('owners begin with a name of 22 letters');
  return name;
}
