import { redisClusterHarness } from '../support/harness-redis.js';
import { describeBackend } from './describe-backend.js';

describeBackend('redis-cluster', redisClusterHarness('queue'));
