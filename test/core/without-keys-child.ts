import { LockService } from '../../lib/core/index.js';
import { memory } from '../../lib/backends/memory/index.js';
import { serve } from '../support/serve.js';

const locks = new LockService(memory());

export type KeylessApi = {
  sequencer(): Promise<string>;
  failures(): Promise<string[]>;
};

serve({
  sequencer: () => locks.withLock('k', (lock) => lock.sequencer()),
  async failures() {
    const failures: string[] = [];
    for (let call = 0; call < 3; call += 1) {
      const failure = await locks.withLock('k', () => 'in').catch((error: unknown) => String(error));
      failures.push(failure);
    }
    return failures;
  },
} satisfies KeylessApi);
