import { describeBackend } from '../describe-backend.js';

describeBackend('memcached-classic');
