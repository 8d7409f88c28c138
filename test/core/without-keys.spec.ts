import { readSequencer } from 'nestjs-distributed-lock/core';

import { spawnChild } from '../support/index.js';
import type { KeylessApi } from './without-keys-child.js';

const file = new URL('./without-keys-child.ts', import.meta.url);
const preloaded = new URL('./without-keys.cjs', import.meta.url);

const spawn = (refused: string) =>
  spawnChild<KeylessApi>(file, { nodeArgs: ['--require', preloaded.pathname], env: { REFUSED_KEYS: refused } });

describe('a process whose OpenSSL refuses', () => {
  it.each(['', 'ed25519'])('"%s": signs sequencers that others can read', async (refused) => {
    const child = await spawn(refused);
    const text = await child.call('sequencer');
    await child.kill();
    expect(readSequencer(text)).toMatchObject({ key: 'k', backend: 'memory' });
    const last = text.length - 9;
    expect(
      readSequencer(text.slice(0, last) + (text[last] === 'A' ? 'B' : 'A') + text.slice(last + 1)),
    ).toBeUndefined();
  });

  it('all keys: says so to each caller, and keeps nobody waiting for a turn', async () => {
    const child = await spawn('ed25519,ec');
    const failures = await child.call('failures');
    await child.kill();
    expect(failures).toHaveLength(3);
    for (const failure of failures) expect(failure).toContain('ec is not allowed here');
  });
});
