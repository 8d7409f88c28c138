import { describeBackend } from '../describe-backend.js';

describeBackend('redis-getset-given-node-redis');
