import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { catchError, from, mergeMap, type Observable, throwError } from 'rxjs';
import type { LockErrors } from './lock-errors.js';

const errorsOfApplication = new WeakMap<ModulesContainer, LockErrors>();

/** Has the interceptors of one application use `errors`. Without it they change nothing. */
export function noteLockErrors(modules: ModulesContainer, errors: LockErrors): void {
  errorsOfApplication.set(modules, errors);
}

/**
 * Turns the errors of locks that leave a handler, or an interceptor of it, into exceptions of the transport. It stands
 * first: the other interceptors of the handler and of its class see the errors themselves.
 */
@Injectable()
export class LockErrorsInterceptor implements NestInterceptor {
  constructor(private readonly modules: ModulesContainer) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const errors = errorsOfApplication.get(this.modules);
    if (!errors) return next.handle();
    return next
      .handle()
      .pipe(
        catchError((error: unknown) =>
          from(errors.translate(error, context)).pipe(mergeMap((translated) => throwError(() => translated))),
        ),
      );
  }
}
