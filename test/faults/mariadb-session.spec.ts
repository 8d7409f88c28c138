import { describeFaults } from './describe-faults.js';

describeFaults('mariadb-session');
