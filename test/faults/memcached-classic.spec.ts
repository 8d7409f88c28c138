import { describeFaults } from './describe-faults.js';

describeFaults('memcached-classic');
