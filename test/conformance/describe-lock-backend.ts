import { type BackendHarness, Contract, timeLimitOf } from '../support/index.js';
import { close } from './close.js';
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
import { declarePromises, type Suite, type SuiteOptions } from './suite.js';
import { transferring } from './transferring.js';
import { waiting } from './waiting.js';

/** Beside others, MySQL and an ensemble take half a minute to start. */
const SERVER_LIMIT_MS = timeLimitOf(300_000);

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
  transferring,
};

/** The promises of every lock backend, checked against its real server. */
export function describeLockBackend(name: string, harness: BackendHarness): void {
  describePromises(name, harness, contractPromises);
}

export function contractPromises(suite: Suite): void {
  for (const [theme, promises] of Object.entries(THEMES)) describe(theme, () => promises(suite));
}

/** Promises on a server that starts before them and ends after them; see `Suite` for which run side by side. */
export function describePromises(
  name: string,
  harness: BackendHarness,
  declare: (suite: Suite) => void,
  options?: SuiteOptions,
): void {
  describe(name, () => {
    runServer(harness);
    declarePromises(harness, declare, options);
  });
}

/** Tests on a server that starts before them and ends after them. */
export function describeOnBackend(name: string, harness: BackendHarness, tests: (contract: Contract) => void): void {
  describe(name, () => {
    const contract = new Contract(harness);
    runServer(harness);
    afterEach(() => contract.endTest());
    tests(contract);
  });
}

/** From before the first test until after the last one, also where it was so late that no test was run. */
function runServer(harness: BackendHarness): void {
  let started: Promise<boolean> | undefined;
  const start = async (): Promise<void> => {
    const starting = harness.start();
    started = starting.then(
      () => true,
      () => false,
    );
    await starting;
  };
  const stop = async (): Promise<void> => {
    if ((await started) === true) await harness.stop();
  };
  beforeAll(start, SERVER_LIMIT_MS);
  afterAll(stop, SERVER_LIMIT_MS);
}
