import { redlockHarness } from '../support/harness-redlock.js';
import { describeBackend } from './describe-backend.js';

describeBackend('redlock', redlockHarness());
