import { memoryHarness } from '../support/harness-memory.js';
import { describeBackend } from './describe-backend.js';

describeBackend('memory', memoryHarness());
