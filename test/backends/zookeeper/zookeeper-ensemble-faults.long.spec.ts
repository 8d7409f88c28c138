import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('zookeeper-ensemble');
