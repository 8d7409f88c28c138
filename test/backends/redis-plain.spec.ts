import { redisHarness } from '../support/harness-redis.js';
import { describeBackend } from './describe-backend.js';

describeBackend('redis-plain', redisHarness('plain'));
