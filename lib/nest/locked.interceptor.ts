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
import type { Declaration } from '../decorators/declaration.js';
import type { LockAnswers } from './lock-answers.js';
import { claim, LOCK_ANSWERS } from './lock-exception.filter.js';
import { declarationOf } from './method-metadata.js';

const contexts = new AsyncLocalStorage<ExecutionContext>();

/**
 * Remembers the request while a locked handler runs, for keys that come from it, and claims the handler's lock errors.
 * `@Locked` attaches it. It takes no lock: the method does, after guards and pipes.
 */
@Injectable()
export class LockedInterceptor implements NestInterceptor {
  constructor(@Optional() @Inject(LOCK_ANSWERS) private readonly answers?: LockAnswers | false) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const handled = contexts.run(context, () => next.handle());
    return this.answers === false ? handled : handled.pipe(tap({ error: (error: unknown) => claim(error, context) }));
  }
}

/** The context of the request that this method of `instance` handles itself, not of one that merely led here. */
export function ownContext(instance: object, declaration: Declaration): ExecutionContext | undefined {
  const context = contexts.getStore();
  if (context?.getClass() !== instance.constructor) return undefined;
  const handler = context.getHandler();
  const isOwn = handler === Reflect.get(instance, declaration.name) || declarationOf(handler) === declaration;
  return isOwn ? context : undefined;
}
