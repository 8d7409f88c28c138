import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { LockConfigurationError } from '../../core/index.js';
import { isObject } from '../../decorators/is-object.js';
import type { LockedOptions } from './locked-types.js';

/** Keys under which @nestjs/schedule describes a job. It is not imported for it. */
const TYPE = 'SCHEDULER_TYPE';
const INTERVAL_OPTIONS = 'SCHEDULE_INTERVAL_OPTIONS';
const CRON = 1;
/** Each process counts its intervals from its own start. A shorter hold opens the key between two ticks. */
const LEAST_OF_PERIOD = 0.75;

/**
 * Looks at a locked job of @nestjs/schedule.
 * @throws LockConfigurationError when `oncePer` cannot keep what it says
 */
export function checkSchedule(method: object, label: string, options: LockedOptions): void {
  const { onBusy, waitMs, minHoldMs = 0 } = options;
  if (Reflect.getMetadata(TYPE, method) === CRON && onBusy === undefined && waitMs === undefined) {
    new Logger('Locked').warn(
      `${label} is a @Cron job of every process, and each waits for its turn to run it. Where one is enough, say oncePer(periodMs); otherwise onBusy: 'throw'`,
    );
  }
  const periodMs = intervalOf(method);
  if (periodMs === undefined || onBusy !== 'skip' || minHoldMs === 0 || minHoldMs >= LEAST_OF_PERIOD * periodMs) return;
  const least = Math.ceil(0.9 * periodMs);
  const why = `${label} is an @Interval, which every process counts from its own start: a key that is closed for ${minHoldMs} of ${periodMs} ms lets others run it in between. Give { onBusy: 'skip', minHoldMs: ${least} }, or use @Cron with oncePer`;
  throw new LockConfigurationError(why, 'minHoldMs');
}

function intervalOf(method: object): number | undefined {
  const options: unknown = Reflect.getMetadata(INTERVAL_OPTIONS, method);
  return isObject(options) && 'timeout' in options && typeof options.timeout === 'number' ? options.timeout : undefined;
}
