import { etcdHarness } from '../support/harness-etcd.js';
import { describeBackend } from './describe-backend.js';

describeBackend('etcd', etcdHarness(1));
