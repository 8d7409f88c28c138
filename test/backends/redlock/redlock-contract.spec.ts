import { describeBackend } from '../describe-backend.js';

describeBackend('redlock');
