import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('redis-queue-given-node-redis-5');
