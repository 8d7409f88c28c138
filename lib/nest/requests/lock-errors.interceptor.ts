import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { catchError, from, mergeMap, type Observable, throwError } from 'rxjs';
import type { LockErrorTranslator } from './lock-error-translator.js';

const translators = new WeakMap<ModulesContainer, LockErrorTranslator>();

export function setLockErrorTranslator(modules: ModulesContainer, translator: LockErrorTranslator): void {
  translators.set(modules, translator);
}

/** First interceptor of a class, so that the other interceptors see the lock errors themselves. */
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
