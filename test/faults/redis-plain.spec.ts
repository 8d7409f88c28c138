import { describeFaults } from './describe-faults.js';

describeFaults('redis-plain');
