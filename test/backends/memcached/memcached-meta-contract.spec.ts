import { describeBackend } from '../describe-backend.js';

describeBackend('memcached-meta');
