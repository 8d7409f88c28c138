import { sqlHarness } from '../support/harness-sql.js';
import { describeBackend } from './describe-backend.js';

describeBackend('mariadb', sqlHarness('mariadb'));
