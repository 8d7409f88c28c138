import type { Wire } from './registered-backend.js';

/** Twenty questions a second, give or take half; a busy machine asks less often. */
export const POLLS = [5, 61] as const;

/** The themes for every kind of backend. */
export const COMMON = ['callers', 'jobs', 'outcomes', 'processes', 'history', 'leaders'] as const;

export const REDIS_WIRE: Wire = { acquire: 'EVALSHA', release: 'EVALSHA' };
export const ONE_ROUND_TRIP = { acquire: 1, release: 1, renew: 1, refused: 1 };
export const QUEUE = { ...ONE_ROUND_TRIP, wait: 1, handOver: 2 };
/** A waiter whose poll was on its way when the key became free has it without another request. */
export const POLLING = { ...ONE_ROUND_TRIP, wait: POLLS, handOver: [1, 3] } as const;
