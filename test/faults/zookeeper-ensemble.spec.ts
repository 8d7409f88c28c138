import { describeFaults } from './describe-faults.js';

describeFaults('zookeeper-ensemble');
