import { sqlHarness } from '../../support/harness-sql.js';
import { describeBackend } from '../describe-backend.js';

describeBackend('postgres-row', sqlHarness('postgres-row'));
describeBackend('mariadb-row', sqlHarness('mariadb-row'));
