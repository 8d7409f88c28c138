import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('mariadb-row');
