import { describeBackend } from '../describe-backend.js';

describeBackend('redis-cluster-node-redis');
