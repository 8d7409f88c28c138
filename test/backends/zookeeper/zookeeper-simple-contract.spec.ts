import { describeBackend } from '../describe-backend.js';

describeBackend('zookeeper-simple');
