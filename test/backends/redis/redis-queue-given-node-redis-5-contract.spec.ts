import { describeBackend } from '../describe-backend.js';

describeBackend('redis-queue-given-node-redis-5');
