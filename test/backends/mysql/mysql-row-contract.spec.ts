import { describeBackend } from '../describe-backend.js';

describeBackend('mysql-row');
