import * as core from 'nestjs-distributed-lock/core';
import { coreOf } from '../mutants.js';
import { wrongAmongReaders } from './joined-readers.js';
import { OF_JOINED_READERS } from './mutants.js';

describe('readers of one process', () => {
  it('let a writer in, hear of a loss, and keep the key until the last one leaves', async () => {
    expect(await wrongAmongReaders(core)).toEqual([]);
  });

  it.each(OF_JOINED_READERS)('are told from those of a core that $mistake', async (mutant) => {
    const mutated = await coreOf(mutant, `readers-${mutant.mistake.replaceAll(' ', '-')}`);
    expect(await wrongAmongReaders(mutated)).not.toEqual([]);
  });
});
