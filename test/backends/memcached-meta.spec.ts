import { memcachedHarness } from '../support/harness-memcached.js';
import { describeBackend } from './describe-backend.js';

describeBackend('memcached-meta', memcachedHarness('meta'));
