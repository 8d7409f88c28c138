export { typeorm, type TypeOrmOptions } from './typeorm.js';
export { fenced, type FencedOptions } from './fenced.js';
export { CreateDistributedLock1760000000000 } from './create-distributed-lock.migration.js';
