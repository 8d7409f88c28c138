import { describeBackend } from '../describe-backend.js';
import { rowHarness } from './row-harness.js';

describeBackend('postgres-row', rowHarness('postgres', 600));
describeBackend('mariadb-row', rowHarness('mariadb', 1_000));
