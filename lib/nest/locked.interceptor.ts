import { AsyncLocalStorage } from 'node:async_hooks';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';

const contexts = new AsyncLocalStorage<ExecutionContext>();

/**
 * Remembers the request while a locked handler runs, so that a key may be taken from it. `@Locked` attaches it by itself;
 * it takes no lock: that happens after guards and pipes, around the method.
 */
@Injectable()
export class LockedInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return contexts.run(context, () => next.handle());
  }
}

/** The context of the request that `method` of `instance` handles itself; not of one that merely led here. */
export function ownContext(instance: object, method: unknown): ExecutionContext | undefined {
  const context = contexts.getStore();
  return context?.getHandler() === method && context?.getClass() === instance.constructor ? context : undefined;
}
