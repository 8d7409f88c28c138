import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { finalize, Observable, tap } from 'rxjs';
import { RequestScope, runInRequest } from './request-scope.js';

/**
 * Remembers the request while its handler runs, for keys that come from it and for waits that end with it. It stands
 * last, directly before the handler: interceptors before it may go on in the asynchronous context of another request.
 */
@Injectable()
export class RequestScopeInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return new Observable((subscriber) => {
      const scope = new RequestScope(context);
      let hasAnswered = false;
      const noted = { next: () => (hasAnswered = true), complete: () => scope.end(), error: () => scope.end() };
      return runInRequest(scope, () =>
        next
          .handle()
          .pipe(
            tap(noted),
            finalize(() => (hasAnswered ? scope.end() : scope.abandon())),
          )
          .subscribe(subscriber),
      );
    });
  }
}
