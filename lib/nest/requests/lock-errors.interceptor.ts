import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { catchError, from, mergeMap, type Observable, throwError } from 'rxjs';
import type { LockErrorTranslator } from './lock-error-translator.js';

const translators = new WeakMap<ModulesContainer, LockErrorTranslator>();

/** Sets the translator of an application. A global module replaces an earlier translator; other modules do not. */
export function setLockErrorTranslator(
  modules: ModulesContainer,
  translator: LockErrorTranslator,
  isGlobal = false,
): void {
  if (isGlobal || !translators.has(modules)) translators.set(modules, translator);
}

/** Translates lock errors. Must be the first interceptor, so that the other interceptors see the original errors. */
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
