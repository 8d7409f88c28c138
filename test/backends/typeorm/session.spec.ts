import { sqlHarness } from '../../support/harness-sql.js';
import { describeBackend } from '../describe-backend.js';

describeBackend('postgres-session', sqlHarness('postgres-session'));
describeBackend('mariadb-session', sqlHarness('mariadb-session'));
