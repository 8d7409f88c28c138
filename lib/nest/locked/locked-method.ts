import type { ExecutionContext } from '@nestjs/common';
import { EMPTY, type Observable, throwError } from 'rxjs';
import {
  type AcquireOptions,
  currentLock,
  isLockError,
  JoinedSignal,
  LockConfigurationError,
  type LockHandle,
  type LockService,
  type LockTimeoutError,
  resolveOptions,
  type WantedKey,
} from '../../core/index.js';
import { type Declaration, getMethodLabel, type Method } from '../../decorators/declaration.js';
import { DEFAULT_BACKEND } from '../inject-lock-service.decorator.js';
import type { KeyTemplate } from '../keys/key-template.js';
import { type KeySource, LockedKeys } from '../keys/locked-keys.js';
import type { Lockable, LockedOptions } from './locked-types.js';
import { createLockedStream, createSkippedStream, toObservable } from './locked-stream.js';
import { checkSchedule } from './schedules.js';
import { hasResponseParameter, isEventStream, returnsObservable } from '../method-metadata.js';
import type { MethodStep, StepRunner } from './method-step.js';
import { getParameterMetadata } from '../keys/parameter-metadata.js';
import { isObject } from '../../decorators/is-object.js';
import { getCurrentRequest, getHandlerContext, type RequestScope } from '../requests/request-scope.js';
import { followLockedResult } from '../results/locked-result.js';
import { assertRunsItself } from '../results/unseen-work.js';

type LockedWork<T> = (locks: readonly LockHandle[]) => Promise<T>;

interface LockRequest {
  readonly service: LockService;
  readonly keys: readonly WantedKey[];
  /** Request that this call handles. What the handler calls belongs to no request. */
  readonly request: RequestScope | undefined;
}

interface MethodCall {
  readonly callMethod: (locks: readonly LockHandle[]) => unknown;
  readonly runStep: StepRunner | undefined;
  readonly writesResponse: boolean;
}

export class LockedMethod {
  readonly label: string;
  readonly backend: string;
  readonly wrapper: Lockable;
  /** Step of another decorator, such as `@Fenced`. The step runs under the lock, and calls the method. */
  step: MethodStep | undefined;
  readonly #keys: LockedKeys;
  readonly #acquireOptions: AcquireOptions;
  readonly #resolvedOptions = new WeakMap<LockService, AcquireOptions>();
  readonly #onBusy: NonNullable<LockedOptions['onBusy']>;
  readonly #lockPositions: ReadonlySet<number>;
  readonly #returnsObservable: boolean;

  constructor(
    readonly declaration: Declaration,
    private readonly method: Method,
    key: KeySource,
    private readonly options: LockedOptions,
    /** Property in which an instance has its `LockService`. */
    readonly serviceProperty: symbol,
  ) {
    const { backend = DEFAULT_BACKEND, onBusy = 'throw', ...acquireOptions } = options;
    this.label = getMethodLabel(declaration);
    this.backend = backend;
    if (typeof onBusy !== 'function' && onBusy !== 'throw' && onBusy !== 'skip') {
      throw new LockConfigurationError(`onBusy of ${this.label} must be 'throw', 'skip' or a function`, 'onBusy');
    }
    this.#onBusy = onBusy;
    this.#acquireOptions = onBusy === 'skip' ? { waitMs: 0, ...acquireOptions } : acquireOptions;
    resolveOptions(this.#acquireOptions);
    this.#keys = new LockedKeys(key, declaration, method, this.label);
    this.#keys.assertClaimsMatchOptions(this.#acquireOptions, resolveOptions);
    this.#lockPositions = getParameterMetadata(declaration).lockPositions;
    this.#returnsObservable = returnsObservable(declaration);
    const callLocked = this.#callLocked.bind(this);
    this.wrapper = function (this: unknown, ...args: unknown[]) {
      return callLocked(this, args);
    };
  }

  /** Templates of the keys; none where a function makes the keys. */
  get templates(): readonly KeyTemplate[] {
    return this.#keys.templates;
  }

  /** @throws LockConfigurationError when calls on instances of `classRef` can never work with `service` */
  validate(classRef: { readonly prototype: object }, service?: LockService, routePrefixes?: readonly string[]): void {
    if (service) {
      this.#resolvedOptions.set(service, service.resolve(this.#acquireOptions));
      this.#keys.assertClaimsMatchOptions(this.#acquireOptions, (options) => service.resolve(options));
    }
    const method: unknown = Reflect.get(classRef.prototype, this.declaration.name);
    if (typeof method !== 'function') return;
    this.#keys.validate(method, classRef, routePrefixes);
    checkSchedule(method, this.label, this.options);
    assertRunsItself(method, this.label);
    if (this.#isStreaming(method)) this.#assertNoStep();
    this.step?.validate(method, classRef, this.#keys);
  }

  /** Calls the method under its lock. An error before the call rejects the promise, or fails the Observable. */
  #callLocked(instance: unknown, args: readonly unknown[]): Promise<unknown> | Observable<unknown> {
    const isStreaming = this.#isStreaming(isObject(instance) && Reflect.get(instance, this.declaration.name));
    try {
      if (!isObject(instance)) throw this.#createServiceError('it was called without its instance');
      const service = this.#getService(instance);
      const context = getHandlerContext(instance, this.declaration);
      const request = context && getCurrentRequest();
      const lockRequest = { service, keys: this.#keys.resolve(instance, args, context), request };
      const callMethod = (locks: readonly LockHandle[]): unknown =>
        Reflect.apply(this.method, instance, this.#insertLock(args, locks));
      if (isStreaming) {
        this.#assertNoStep();
        return this.#createLockedObservable(lockRequest, args, callMethod, context);
      }
      const runStep = this.step?.prepare(instance, args, context);
      const writesResponse = context?.getType() === 'http' && hasResponseParameter(this.declaration);
      return this.#callWithFollowedResult(lockRequest, args, { callMethod, runStep, writesResponse });
    } catch (error) {
      return isStreaming ? throwError(() => error) : Promise.reject(error);
    }
  }

  #createLockedObservable(
    lockRequest: LockRequest,
    args: readonly unknown[],
    callMethod: MethodCall['callMethod'],
    context: ExecutionContext | undefined,
  ): Observable<unknown> {
    const createBusyStream = (error: LockTimeoutError): Observable<unknown> =>
      this.#onBusy === 'skip' ? createSkippedStream(context) : toObservable(() => this.#getBusyResult(error, args));
    return createLockedStream((work, unsubscribeSignal) => {
      const streamWork: LockedWork<Observable<unknown>> = (locks) => work(locks).then(() => EMPTY);
      return this.#runLocked(lockRequest, streamWork, createBusyStream, unsubscribeSignal);
    }, callMethod);
  }

  /** Resolves when the method has returned. Holds the lock until the work behind the returned value has ended. */
  #callWithFollowedResult(
    lockRequest: LockRequest,
    args: readonly unknown[],
    { callMethod, runStep, writesResponse }: MethodCall,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const whenReleased = (): Promise<unknown> => lockedRun;
      const callAndFollow: LockedWork<unknown> = async (locks) => {
        const returnedValue = await callMethod(locks);
        const result = followLockedResult(returnedValue, {
          label: this.label,
          locks,
          whenReleased,
          writesResponse,
          request: lockRequest.request,
          getTtlMs: () => lockRequest.service.resolve(this.#acquireOptions).ttlMs,
        });
        if (!result) return returnedValue;
        if (this.step) {
          const error = this.step.createStepError('needs a method whose work ends with its promise', 'returns');
          result.cancel(error);
          await result.ended;
          throw error;
        }
        resolve(result.value);
        return result.ended;
      };
      const work: LockedWork<unknown> = runStep ? (locks) => runStep(locks, () => callAndFollow(locks)) : callAndFollow;
      const lockedRun = this.#runLocked(lockRequest, work, (error) => this.#getBusyResult(error, args));
      lockedRun.then(resolve, reject);
    });
  }

  #isStreaming(method: unknown): boolean {
    return this.#returnsObservable || (typeof method === 'function' && isEventStream(method));
  }

  /** @throws LockConfigurationError when the method has a step: a step ends, and an Observable may never end */
  #assertNoStep(): void {
    if (!this.step) return;
    throw this.step.createStepError('needs a method that returns a promise, not an Observable', 'returns');
  }

  #getBusyResult(error: LockTimeoutError, args: readonly unknown[]): unknown {
    return typeof this.#onBusy === 'function' ? this.#onBusy({ error, args }) : undefined;
  }

  async #runLocked<T>(
    { service, keys, request }: LockRequest,
    work: LockedWork<T>,
    getBusyResult: (error: LockTimeoutError) => T,
    unsubscribeSignal?: AbortSignal,
  ): Promise<T> {
    // A call under another lock goes on waiting after its client has gone, because the work of the outer lock goes on.
    const abandonSignal = currentLock() ? undefined : request?.abandonSignal;
    const signals = [this.#acquireOptions.signal, unsubscribeSignal, abandonSignal].filter((one) => one !== undefined);
    const joinedSignal = signals.length > 1 ? new JoinedSignal(signals) : undefined;
    let hasStarted = false;
    const startWork: LockedWork<T> = (locks) => {
      abandonSignal?.throwIfAborted();
      hasStarted = true;
      return work(locks);
    };
    try {
      const options = this.#getOptions(service, joinedSignal?.signal ?? signals[0]);
      const [firstKey] = keys;
      const result = await (typeof firstKey === 'string' && keys.length === 1
        ? service.withLock(firstKey, (lock) => startWork([lock]), options)
        : service.withLocks(keys, ({ locks }) => startWork(locks), options));
      if (!hasStarted)
        throw this.#createServiceError(
          'the one that it was given ran nothing, as mocks do. In tests, use LockTestingModule or withTestLocks(instance)',
        );
      return result;
    } catch (error) {
      if (hasStarted || this.#onBusy === 'throw' || !isLockError(error, 'LOCK_TIMEOUT')) throw error;
      return getBusyResult(error);
    } finally {
      joinedSignal?.end();
    }
  }

  #getOptions(service: LockService, signal: AbortSignal | undefined): AcquireOptions {
    if (signal && signal !== this.#acquireOptions.signal) return { ...this.#acquireOptions, signal };
    return this.#resolvedOptions.get(service) ?? this.#acquireOptions;
  }

  #getService(instance: object): LockService {
    const service: LockService | undefined = Reflect.get(instance, this.serviceProperty);
    if (service) return service;
    throw this.#createServiceError(
      'DistributedLockModule is missing, or neither Nest nor a provider made this instance',
    );
  }

  #createServiceError(reason: string): LockConfigurationError {
    return new LockConfigurationError(`${this.label} is locked and has no LockService: ${reason}`, 'backend');
  }

  #insertLock(args: readonly unknown[], locks: readonly LockHandle[]): readonly unknown[] {
    if (this.#lockPositions.size === 0) return args;
    const argsWithLock = [...args];
    for (const index of this.#lockPositions) argsWithLock[index] = locks.at(-1);
    return argsWithLock;
  }
}
