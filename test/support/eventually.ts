import { timeLimitOf } from './machine.js';

export interface EventuallyOptions {
  /**
   * Time on a machine that is not slow: see `timeLimitOf`.
   * @default 5_000
   */
  readonly withinMs?: number;
  /** @default 3 */
  readonly everyMs?: number;
}

/**
 * Waits until `condition` holds: resolves to the first result that is neither `false` nor a throw, so that predicates and
 * blocks of `expect(...)` both fit. A condition that hangs is not interrupted.
 * @throws the condition's last error, as the cause of one that names the deadline
 */
export async function eventually<T>(condition: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { everyMs = 3 } = options;
  const withinMs = timeLimitOf(options.withinMs ?? 5_000);
  const abandonAt = performance.now() + withinMs;
  for (;;) {
    const outcome = await attempt(condition);
    if (outcome.holds) return outcome.value;
    if (performance.now() >= abandonAt) {
      const why = outcome.error instanceof Error ? `: ${outcome.error.message}` : '';
      throw new Error(`Not within ${withinMs} ms${why}`, { cause: outcome.error });
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

type Outcome<T> = { readonly holds: true; readonly value: T } | { readonly holds: false; readonly error: unknown };

async function attempt<T>(condition: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    const value = await condition();
    return value === false ? { holds: false, error: new Error('the condition is false') } : { holds: true, value };
  } catch (error) {
    return { holds: false, error };
  }
}
