import { describeLockBackend } from '../../conformance/describe-lock-backend.js';
import { wantedOf } from '../../support/wanted-backends.js';
import { ExistingTableWorld } from './existing-table-world.js';

for (const type of wantedOf(['postgres', 'mariadb', 'sqlite'])) {
  describeLockBackend(`a table of an older program, ${type}`, new ExistingTableWorld(type).harness);
}
