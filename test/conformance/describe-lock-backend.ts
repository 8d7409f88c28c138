import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import type { BackendHarness } from './backend-harness.js';
import { close } from './close.js';
import { Contract } from './contract.js';
import { exclusion } from './exclusion.js';
import { fencing } from './fencing.js';
import { handOff } from './hand-off.js';
import { holding } from './holding.js';
import { keys } from './keys.js';
import { lateRelease } from './late-release.js';
import { leading } from './leading.js';
import { lockDelay } from './lock-delay.js';
import { looking } from './looking.js';
import { loss } from './loss.js';
import { minHold } from './min-hold.js';
import { reentrancy } from './reentrancy.js';
import { release } from './release.js';
import { sequencers } from './sequencers.js';
import { severalKeys } from './several-keys.js';
import { sharing } from './sharing.js';
import { declarePromises, type Suite } from './suite.js';
import { waiting } from './waiting.js';

const THEMES = {
  exclusion,
  waiting,
  holding,
  loss,
  fencing,
  release,
  'late release': lateRelease,
  're-entrancy': reentrancy,
  'hand-off': handOff,
  close,
  keys,
  sequencers,
  'lock-delay': lockDelay,
  'min-hold': minHold,
  leading,
  looking,
  sharing,
  'several keys': severalKeys,
};

/** The promises of every lock backend, checked against its real server. */
export function describeLockBackend(name: string, harness: BackendHarness): void {
  describePromises(name, harness, contractPromises);
}

export function contractPromises(suite: Suite): void {
  for (const [theme, promises] of Object.entries(THEMES)) describe(theme, () => promises(suite));
}

/** Promises on a server that starts before them and ends after them; see `Suite` for which run side by side. */
export function describePromises(name: string, harness: BackendHarness, declare: (suite: Suite) => void): void {
  describe(name, () => {
    beforeAll(() => harness.start());
    afterAll(() => harness.stop());
    declarePromises(harness, declare);
  });
}

/** Tests on a server that starts before them and ends after them. */
export function describeOnBackend(name: string, harness: BackendHarness, tests: (contract: Contract) => void): void {
  describe(name, () => {
    const contract = new Contract(harness);
    beforeAll(() => harness.start());
    afterEach(() => contract.endTest());
    afterAll(() => harness.stop());
    tests(contract);
  });
}
