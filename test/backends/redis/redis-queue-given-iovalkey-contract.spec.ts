import { describeBackend } from '../describe-backend.js';

describeBackend('redis-queue-given-iovalkey');
