import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { LockConfigurationError } from '../../core/index.js';
import { isObject } from '../../decorators/is-object.js';
import type { LockedOptions } from './locked-types.js';

/** Metadata keys of @nestjs/schedule, which need not be installed. */
const JOB_TYPE_KEY = 'SCHEDULER_TYPE';
const INTERVAL_OPTIONS_KEY = 'SCHEDULE_INTERVAL_OPTIONS';
/** Value of `SchedulerType.CRON` in `@nestjs/schedule`. */
const CRON_TYPE = 1;
/** Minimum ratio of `minHoldMs` to the period, so that other processes find the key held when they tick. */
const MIN_HELD_SHARE = 0.75;
const RECOMMENDED_HELD_SHARE = 0.9;

/**
 * Warns when the processes would run a `@Cron` job one after the other.
 * @throws LockConfigurationError when `minHoldMs` of an `@Interval` job is too short for one run in each period
 */
export function checkSchedule(method: object, label: string, options: LockedOptions): void {
  const { onBusy, waitMs, minHoldMs = 0 } = options;
  const isCronJob = Reflect.getMetadata(JOB_TYPE_KEY, method) === CRON_TYPE;
  if (isCronJob && onBusy === undefined && waitMs === undefined) {
    new Logger('Locked').warn(
      `${label} is a @Cron job of every process, and each waits for its turn to run it. Where one is enough, say oncePer(periodMs); otherwise onBusy: 'throw'`,
    );
  }
  const periodMs = getIntervalMs(method);
  const runsOncePerPeriod = onBusy === 'skip' && minHoldMs > 0;
  if (periodMs === undefined || !runsOncePerPeriod || minHoldMs >= MIN_HELD_SHARE * periodMs) return;
  const recommendedMs = Math.ceil(RECOMMENDED_HELD_SHARE * periodMs);
  const reason = `${label} is an @Interval, which every process counts from its own start: a key that is closed for ${minHoldMs} of ${periodMs} ms lets others run it in between. Give { onBusy: 'skip', minHoldMs: ${recommendedMs} }, or use @Cron with oncePer`;
  throw new LockConfigurationError(reason, 'minHoldMs');
}

function getIntervalMs(method: object): number | undefined {
  const options: unknown = Reflect.getMetadata(INTERVAL_OPTIONS_KEY, method);
  return isObject(options) && 'timeout' in options && typeof options.timeout === 'number' ? options.timeout : undefined;
}
