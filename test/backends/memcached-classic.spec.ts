import { memcachedHarness } from '../support/harness-memcached.js';
import { describeBackend } from './describe-backend.js';

describeBackend('memcached-classic', memcachedHarness('classic'));
