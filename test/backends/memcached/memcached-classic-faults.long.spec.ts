import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('memcached-classic');
