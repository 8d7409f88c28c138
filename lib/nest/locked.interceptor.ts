import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  Optional,
} from '@nestjs/common';
import { type Observable, tap } from 'rxjs';
import type { LockAnswers } from './lock-answers.js';
import { LOCK_ANSWERS } from './lock-exception.filter.js';
import { claim } from './locked-exception.filter.js';

const contexts = new AsyncLocalStorage<ExecutionContext>();

/**
 * Remembers the request while a locked handler runs, so that a key may be taken from it, and which lock errors came
 * of it. `@Locked` attaches it by itself; it takes no lock: that happens after guards and pipes, around the method.
 */
@Injectable()
export class LockedInterceptor implements NestInterceptor {
  constructor(@Optional() @Inject(LOCK_ANSWERS) private readonly answers?: LockAnswers | false) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const handled = contexts.run(context, () => next.handle());
    return this.answers === false ? handled : handled.pipe(tap({ error: (error: unknown) => claim(error, context) }));
  }
}

/** The context of the request that `method` of `instance` handles itself; not of one that merely led here. */
export function ownContext(instance: object, method: unknown): ExecutionContext | undefined {
  const context = contexts.getStore();
  return context?.getHandler() === method && context?.getClass() === instance.constructor ? context : undefined;
}
