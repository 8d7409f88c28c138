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
import { type Declaration, labelOf, type Method } from '../../decorators/declaration.js';
import { DEFAULT_BACKEND } from '../inject-lock-service.decorator.js';
import type { KeyTemplate } from '../keys/key-template.js';
import { type KeySource, LockedKeys } from '../keys/locked-keys.js';
import type { Lockable, LockedOptions } from './locked-types.js';
import { lockedStream, toObservable } from './locked-stream.js';
import { checkSchedule } from './schedules.js';
import { isEventStream, returnsObservable, takesResponse } from '../method-metadata.js';
import type { Enclosure, MethodStep } from './method-step.js';
import { parameterMetadata } from '../keys/parameter-metadata.js';
import { isObject } from '../../decorators/is-object.js';
import { currentRequest, ownContext } from '../requests/request-scope.js';
import { lockedResult } from '../results/locked-result.js';

type Work<T> = (locks: readonly LockHandle[]) => Promise<T>;

interface Call {
  readonly service: LockService;
  readonly keys: readonly WantedKey[];
}

interface Performance {
  readonly perform: (locks: readonly LockHandle[]) => unknown;
  readonly enclose: Enclosure | undefined;
  readonly writesResponse: boolean;
}

/** A method with `@Locked`: which keys its calls take, and how. */
export class LockedMethod {
  readonly label: string;
  readonly backend: string;
  /** Takes the place of the method. */
  readonly wrapper: Lockable;
  /** The work of another decorator between the lock and the method. */
  step: MethodStep | undefined;
  readonly #keys: LockedKeys;
  readonly #acquire: AcquireOptions;
  /** By service, so that no call has to resolve them. */
  readonly #resolved = new WeakMap<LockService, AcquireOptions>();
  readonly #onBusy: NonNullable<LockedOptions['onBusy']>;
  readonly #outlivesClient: boolean;
  readonly #lockArguments: ReadonlySet<number>;
  readonly #returnsObservable: boolean;

  constructor(
    readonly declaration: Declaration,
    private readonly method: Method,
    key: KeySource,
    private readonly options: LockedOptions,
    /** Where an instance has its `LockService`. */
    readonly property: symbol,
  ) {
    const { backend = DEFAULT_BACKEND, onBusy = 'throw', outliveClient = false, ...acquire } = options;
    this.label = labelOf(declaration);
    this.backend = backend;
    if (typeof onBusy !== 'function' && onBusy !== 'throw' && onBusy !== 'skip') {
      throw new LockConfigurationError(`onBusy of ${this.label} must be 'throw', 'skip' or a function`, 'onBusy');
    }
    this.#onBusy = onBusy;
    this.#outlivesClient = outliveClient;
    this.#acquire = onBusy === 'skip' ? { waitMs: 0, ...acquire } : acquire;
    resolveOptions(this.#acquire);
    this.#keys = new LockedKeys(key, declaration, method, this.label);
    this.#keys.assertClaims(this.#acquire, resolveOptions);
    this.#lockArguments = parameterMetadata(declaration).locks;
    this.#returnsObservable = returnsObservable(declaration);
    const call = this.#call.bind(this);
    this.wrapper = function (this: unknown, ...args: unknown[]) {
      return call(this, args);
    };
  }

  /** Those of its keys, none where a function makes them. */
  get templates(): readonly KeyTemplate[] {
    return this.#keys.templates;
  }

  /** @throws LockConfigurationError when no call on an instance of `classRef`, by `service`, can ever work */
  validate(classRef: { readonly prototype: object }, service?: LockService, prefixes?: readonly string[]): void {
    if (service) {
      this.#resolved.set(service, service.resolve(this.#acquire));
      this.#keys.assertClaims(this.#acquire, (options) => service.resolve(options));
    }
    const method: unknown = Reflect.get(classRef.prototype, this.declaration.name);
    if (typeof method !== 'function') return;
    this.#keys.validate(method, classRef, prefixes);
    checkSchedule(method, this.label, this.options);
    if (this.#streams(method)) this.#refuseStep();
    this.step?.validate(method, classRef, this.#keys);
  }

  /** Never runs the method without its locks. What is missing fails the promise or the Observable. */
  #call(instance: unknown, args: readonly unknown[]): Promise<unknown> | Observable<unknown> {
    const streams = this.#streams(isObject(instance) && Reflect.get(instance, this.declaration.name));
    try {
      if (!isObject(instance)) throw this.#withoutService('it was called without its instance');
      const service = this.#serviceOf(instance);
      const context = ownContext(instance, this.declaration);
      const call = { service, keys: this.#keys.of(instance, args, context) };
      const perform = (locks: readonly LockHandle[]): unknown =>
        Reflect.apply(this.method, instance, this.#fill(args, locks));
      if (streams) {
        this.#refuseStep();
        return lockedStream((work, unsubscribed) => {
          const ended: Work<Observable<unknown>> = (locks) => work(locks).then(() => EMPTY);
          const instead = (busy: LockTimeoutError): Observable<unknown> =>
            this.#onBusy === 'skip' ? EMPTY : toObservable(() => this.#instead(busy, args));
          return this.#locked(call, ended, instead, unsubscribed);
        }, perform);
      }
      const enclose = this.step?.enclose(instance, args, context);
      const writesResponse = context?.getType() === 'http' && takesResponse(this.declaration);
      const answer = this.#answer(call, { perform, enclose, writesResponse }, (busy) => this.#instead(busy, args));
      return answer;
    } catch (error) {
      return streams ? throwError(() => error) : Promise.reject(error);
    }
  }

  /** Answers when the method has returned. The lock lasts until the work behind what it returned has ended. */
  #answer(
    call: Call,
    { perform, enclose, writesResponse }: Performance,
    instead: (busy: LockTimeoutError) => unknown,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const whenReleased = (): Promise<unknown> => run;
      const body: Work<unknown> = async (locks) => {
        const returned = await perform(locks);
        const result = lockedResult(returned, {
          label: this.label,
          locks,
          whenReleased,
          writesResponse,
          outlivesRequest: this.#outlivesClient,
        });
        if (!result) return returned;
        if (this.step) {
          const error = this.step.refused('needs a method whose work ends with its promise', 'returns');
          result.cancel(error);
          throw error;
        }
        resolve(result.value);
        return result.ended;
      };
      const work: Work<unknown> = enclose ? (locks) => enclose(locks, () => body(locks)) : body;
      const run = this.#locked(call, work, instead);
      run.then(resolve, reject);
    });
  }

  #streams(method: unknown): boolean {
    return this.#returnsObservable || (typeof method === 'function' && isEventStream(method));
  }

  /** A step has an end, and an Observable may have none. */
  #refuseStep(): void {
    if (this.step) throw this.step.refused('needs a method that returns a promise, not an Observable', 'returns');
  }

  #instead(error: LockTimeoutError, args: readonly unknown[]): unknown {
    return typeof this.#onBusy === 'function' ? this.#onBusy({ error, args }) : undefined;
  }

  /** Answers with `instead` when the lock is busy, unless `onBusy` throws. An error of the work is not busy. */
  async #locked<T>(
    { service, keys }: Call,
    work: Work<T>,
    instead: (busy: LockTimeoutError) => T,
    unsubscribed?: AbortSignal,
  ): Promise<T> {
    // Work that runs under a lock goes on when its client has gone. Hence its inner locks are waited for, too.
    const departure = this.#outlivesClient || currentLock() ? undefined : currentRequest()?.departure;
    const signals = [this.#acquire.signal, unsubscribed, departure].filter((signal) => signal !== undefined);
    const joined = signals.length > 1 ? new JoinedSignal(signals) : undefined;
    const [only] = keys;
    let entered = false;
    const enter: Work<T> = (locks) => {
      departure?.throwIfAborted();
      entered = true;
      return work(locks);
    };
    try {
      const signal = joined?.signal ?? signals[0];
      const options =
        signal && signal !== this.#acquire.signal
          ? { ...this.#acquire, signal }
          : (this.#resolved.get(service) ?? this.#acquire);
      const result = await (typeof only === 'string' && keys.length === 1
        ? service.withLock(only, (lock) => enter([lock]), options)
        : service.withLocks(keys, ({ locks }) => enter(locks), options));
      if (!entered)
        throw this.#withoutService(
          'the one that it was given ran nothing, as mocks do. In tests, use LockTestingModule or withTestLocks(instance)',
        );
      return result;
    } catch (error) {
      if (entered || this.#onBusy === 'throw' || !isLockError(error, 'LOCK_TIMEOUT')) throw error;
      return instead(error);
    } finally {
      joined?.end();
    }
  }

  #serviceOf(instance: object): LockService {
    const service: LockService | undefined = Reflect.get(instance, this.property);
    if (service) return service;
    throw this.#withoutService('DistributedLockModule is missing, or neither Nest nor a provider made this instance');
  }

  #withoutService(why: string): LockConfigurationError {
    return new LockConfigurationError(`${this.label} is locked and has no LockService: ${why}`, 'backend');
  }

  #fill(args: readonly unknown[], locks: readonly LockHandle[]): readonly unknown[] {
    if (this.#lockArguments.size === 0) return args;
    const filled = [...args];
    for (const index of this.#lockArguments) filled[index] = locks.at(-1);
    return filled;
  }
}

const METHODS = Symbol.for('nestjs-distributed-lock/methods with @Locked');

/** The locked methods that the class of `prototype` declares or inherits. */
export function lockedMethods(prototype: object): readonly LockedMethod[] {
  const methods: unknown = Reflect.getMetadata(METHODS, prototype);
  return Array.isArray(methods) ? methods : [];
}

export function addLockedMethod(method: LockedMethod): void {
  const { target } = method.declaration;
  Reflect.defineMetadata(METHODS, [...lockedMethods(target), method], target);
}
