import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('postgres-driver-session');
