import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('redis-getset-given-node-redis');
