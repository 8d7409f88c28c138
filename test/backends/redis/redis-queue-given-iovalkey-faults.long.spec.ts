import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('redis-queue-given-iovalkey');
