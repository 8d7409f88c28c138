import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('redis-sentinel-node-redis');
