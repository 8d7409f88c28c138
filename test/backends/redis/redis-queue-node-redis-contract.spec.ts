import { describeBackend } from '../describe-backend.js';

describeBackend('redis-queue-node-redis');
