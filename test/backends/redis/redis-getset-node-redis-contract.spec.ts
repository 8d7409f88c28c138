import { describeBackend } from '../describe-backend.js';

describeBackend('redis-getset-node-redis');
