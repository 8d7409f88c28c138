import { describeBackend } from '../describe-backend.js';
import { sessionHarness } from './session-harness.js';

describeBackend('postgres-session', sessionHarness('postgres', 600));
describeBackend('mariadb-session', sessionHarness('mariadb', 1_000));
