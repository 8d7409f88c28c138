import { zookeeperHarness } from '../support/harness-zookeeper.js';
import { describeBackend } from './describe-backend.js';

describeBackend('zookeeper', zookeeperHarness('sequential', 'single'));
