import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { finalize, Observable, tap } from 'rxjs';
import { RequestScope, runInRequest } from './request-scope.js';

/**
 * Interceptor that must be the last before the handler, because other interceptors may call the handler in the
 * asynchronous context of another request.
 */
@Injectable()
export class RequestScopeInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return new Observable((subscriber) => {
      const scope = new RequestScope(context);
      let hasAnswered = false;
      const outcomeObserver = {
        next: () => (hasAnswered = true),
        complete: () => scope.end(),
        error: () => scope.end(),
      };
      return runInRequest(scope, () =>
        next
          .handle()
          .pipe(
            tap(outcomeObserver),
            finalize(() => (hasAnswered ? scope.end() : scope.abandon())),
          )
          .subscribe(subscriber),
      );
    });
  }
}
