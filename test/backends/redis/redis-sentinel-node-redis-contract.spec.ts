import { describeBackend } from '../describe-backend.js';

describeBackend('redis-sentinel-node-redis');
