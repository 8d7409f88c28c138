/** What most specs need, in one import. Files that this one loads, and programs that run without jest, import each by its name. */
export type { Lease } from '../../lib/core/leasing/lease.js';
export type * from '../conformance/backend-harness.js';
export * from '../conformance/contract.js';
export type * from '../conformance/suite.js';
export * from '../servers/ask-redis.js';
export * from '../servers/free-port.js';
export * from '../servers/redis-server.js';
export * from './contend.js';
export * from './eventually.js';
export * from './fault-proxy.js';
export * from './fencing-token.js';
export * from './harness-connection.js';
export * from './harness-holder.js';
export * from './machine.js';
export * from './processes.js';
export * from './tier.js';
export * from './wanted-backends.js';
export * from './world.js';
