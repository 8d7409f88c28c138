import { describeBackend } from '../describe-backend.js';

describeBackend('etcd');
