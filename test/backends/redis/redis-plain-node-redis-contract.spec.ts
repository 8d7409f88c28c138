import { describeBackend } from '../describe-backend.js';

describeBackend('redis-plain-node-redis');
