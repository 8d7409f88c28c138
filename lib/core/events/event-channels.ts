import { type Channel, channel } from 'node:diagnostics_channel';
import type { LockEvents } from './lock-observer.js';

const createChannel = (event: keyof LockEvents): Channel => channel(`nestjs-distributed-lock:${event}`);

export const EVENT_CHANNELS: Readonly<Record<keyof LockEvents, Channel>> = {
  waiting: createChannel('waiting'),
  acquired: createChannel('acquired'),
  released: createChannel('released'),
  timedOut: createChannel('timedOut'),
  jeopardy: createChannel('jeopardy'),
  safe: createChannel('safe'),
  lost: createChannel('lost'),
  termBegan: createChannel('termBegan'),
  termEnded: createChannel('termEnded'),
  backendFailed: createChannel('backendFailed'),
  healthChanged: createChannel('healthChanged'),
  orderSuspect: createChannel('orderSuspect'),
};
