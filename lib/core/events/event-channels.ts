import { type Channel, channel } from 'node:diagnostics_channel';
import type { LockEvents } from './lock-observer.js';

const named = (event: keyof LockEvents): Channel => channel(`nestjs-distributed-lock:${event}`);

/** For those who subscribe to Node's channels, such as agents: all services of the process. */
export const EVENT_CHANNELS: Readonly<Record<keyof LockEvents, Channel>> = {
  waiting: named('waiting'),
  acquired: named('acquired'),
  released: named('released'),
  timedOut: named('timedOut'),
  jeopardy: named('jeopardy'),
  safe: named('safe'),
  lost: named('lost'),
  termBegan: named('termBegan'),
  termEnded: named('termEnded'),
  backendFailed: named('backendFailed'),
  healthChanged: named('healthChanged'),
  orderSuspect: named('orderSuspect'),
};
