import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { defer, filter, from, mergeMap, type Observable, Subject, switchMap, take, timer } from 'rxjs';
import { serving } from './apps.js';
import { Crossing } from './crossing.js';
import { text } from './http-text.js';

@Injectable()
class AfterPromise implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return from(Promise.resolve()).pipe(switchMap(() => next.handle()));
  }
}

@Injectable()
class AfterTimer implements NestInterceptor {
  async intercept(_: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    return timer(1).pipe(mergeMap(() => next.handle()));
  }
}

@Injectable()
class Deferring implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return defer(() => next.handle());
  }
}

/** Lets two requests in together. The second one calls the handler of the first in its own asynchronous context. */
@Injectable()
class Paired implements NestInterceptor {
  readonly #arrivals = new Subject<number>();
  #count = 0;
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    const both = this.#arrivals.pipe(
      filter((count) => count === 2),
      take(1),
      switchMap(() => next.handle()),
    );
    setTimeout(() => this.#arrivals.next((this.#count += 1)), 20);
    return both;
  }
}

describe('@Locked below an interceptor that calls the handler later', () => {
  const crossing = new Crossing();

  @Controller()
  class Sales {
    @UseInterceptors(AfterPromise)
    @Locked('promise_:params.id')
    @Post('promise/:id')
    promise(): Promise<string> {
      return crossing.cross('sold');
    }
    @Locked('timer_:params.id')
    @UseInterceptors(AfterTimer, Deferring)
    @Post('timer/:id')
    timer(): Promise<string> {
      return crossing.cross('sold');
    }
    @Post('paired/:id')
    @Locked('paired_:params.id')
    @UseInterceptors(Paired)
    paired(): Promise<string> {
      return crossing.cross('sold');
    }
  }

  @UseInterceptors(AfterPromise)
  @Controller('late')
  class LateSales extends Sales {}

  it('has the key of its own request', async () => {
    const url = await serving(crossing, Sales, LateSales);
    for (const path of ['promise/1', 'timer/2', 'late/promise/3', 'late/timer/4'])
      expect(await text(`${url}/${path}`, { method: 'POST' })).toBe('201 sold');
    expect(crossing.keys.splice(0)).toEqual(['promise_1', 'timer_2', 'promise_3', 'timer_4']);
    const paired = ['5', '6'].map((id) => text(`${url}/paired/${id}`, { method: 'POST' }));
    expect(await Promise.all(paired)).toEqual(['201 sold', '201 sold']);
    expect(crossing.keys.toSorted()).toEqual(['paired_5', 'paired_6']);
  });
});
