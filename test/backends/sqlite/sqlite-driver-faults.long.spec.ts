import { describeFaults } from '../../faults/describe-faults.js';

describeFaults('sqlite-driver');
