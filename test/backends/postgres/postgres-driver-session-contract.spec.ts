import { describeBackend } from '../describe-backend.js';

describeBackend('postgres-driver-session');
