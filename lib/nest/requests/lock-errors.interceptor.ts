import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { catchError, from, mergeMap, type Observable, throwError } from 'rxjs';
import type { LockErrorTranslator } from './lock-error-translator.js';

const translators = new WeakMap<ModulesContainer, LockErrorTranslator>();

/** Has the interceptors of one application use `translator`. Without a translator, the interceptors change nothing. */
export function setLockErrorTranslator(modules: ModulesContainer, translator: LockErrorTranslator): void {
  translators.set(modules, translator);
}

/**
 * Translates lock errors that leave a handler, or an interceptor of the handler, into exceptions of the transport. It is the
 * first interceptor of a class: the other ones see the lock errors themselves.
 */
@Injectable()
export class LockErrorsInterceptor implements NestInterceptor {
  constructor(private readonly modules: ModulesContainer) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const translator = translators.get(this.modules);
    if (!translator) return next.handle();
    return next
      .handle()
      .pipe(
        catchError((error: unknown) =>
          from(translator.translate(error, context)).pipe(mergeMap((exception) => throwError(() => exception))),
        ),
      );
  }
}
