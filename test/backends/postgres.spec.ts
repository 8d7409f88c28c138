import { sqlHarness } from '../support/harness-sql.js';
import { describeBackend } from './describe-backend.js';

describeBackend('postgres', sqlHarness('postgres'));
