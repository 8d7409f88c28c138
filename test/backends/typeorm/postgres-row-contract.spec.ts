import { describeBackend } from '../describe-backend.js';

describeBackend('postgres-row');
