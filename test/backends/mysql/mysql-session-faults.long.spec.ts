import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('mysql-session');
