import { describeLockBackend } from '../../conformance/describe-lock-backend.js';
import { wantedOf } from '../describe-backend.js';
import { MethodLockWorld } from './method-lock-world.js';

for (const type of wantedOf(['postgres', 'mariadb', 'sqlite'])) {
  describeLockBackend(`a table of an older program, ${type}`, new MethodLockWorld(type).harness);
}
