import { redisSentinelHarness } from '../support/harness-redis.js';
import { describeBackend } from './describe-backend.js';

describeBackend('redis-sentinel', redisSentinelHarness('queue'));
