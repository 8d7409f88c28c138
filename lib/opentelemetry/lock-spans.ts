import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import {
  type CallTrace,
  isLockError,
  type LockEvents,
  type LockObserver,
  type LockTracer,
  type TracedCall,
  type TracedHold,
} from '../core/index.js';
import { keyFamily } from '../nest/locked/key-template-names.js';

/** The spans of the holds that a context is inside of. */
const INSIDE = createContextKey('nestjs-distributed-lock: holds');

export interface LockSpansOptions {
  /** @default the global one */
  readonly tracerProvider?: TracerProvider;
  /** The name that many keys share, for the names of spans. @default its first word, and `*` for all that follows */
  readonly templateOf?: (key: string) => string;
}

/**
 * Spans of a lock service: `acquire <template>` from the call until the lock is the caller's, and `hold <template>` from
 * then to the release or the loss. Both are children of the caller's span. What `withLock`, `@Locked` and
 * `LockHandle.run` run under a lock is a child of its `hold` span. Re-entry has no spans of its own.
 */
export class LockSpans implements LockObserver {
  readonly tracer: LockTracer;
  readonly #tracer: Tracer;
  readonly #templateOf: (key: string) => string;
  readonly #holds = new Map<string, Span>();

  constructor({ tracerProvider, templateOf }: LockSpansOptions = {}) {
    this.#tracer = (tracerProvider ?? trace).getTracer('nestjs-distributed-lock');
    this.#templateOf = templateOf ?? keyFamily;
    this.tracer = {
      begin: (call) => this.#begin(call),
      run: (hold, work) => this.#run(hold, work),
    };
  }

  released({ key, fencingToken }: LockEvents['released']): void {
    this.#end({ key, fencingToken });
  }

  jeopardy({ key, fencingToken, leftMs }: LockEvents['jeopardy']): void {
    this.#holds.get(idOf({ key, fencingToken }))?.addEvent('jeopardy', { 'distributed_lock.left_ms': leftMs });
  }

  safe({ key, fencingToken }: LockEvents['safe']): void {
    this.#holds.get(idOf({ key, fencingToken }))?.addEvent('safe');
  }

  lost({ key, fencingToken, reason }: LockEvents['lost']): void {
    this.#end({ key, fencingToken }, reason);
  }

  #begin({ key, backend, waitMs }: TracedCall): CallTrace {
    const caller = context.active();
    const template = this.#templateOf(key);
    const attributes: Attributes = { 'distributed_lock.key': key, 'distributed_lock.backend': backend };
    const span = this.#tracer.startSpan(`acquire ${template}`, { attributes }, caller);
    return {
      granted: (hold) => {
        const granted: Attributes = {
          'distributed_lock.fencing_token': String(hold.fencingToken),
          'distributed_lock.hand_off': hold.handOff > 0,
        };
        span.setAttributes({ ...granted, 'distributed_lock.acquired': true }).end();
        this.#hold(hold, template, { ...attributes, ...granted }, caller);
      },
      refused: () => {
        span.setAttribute('distributed_lock.acquired', false);
        if (waitMs > 0) span.setAttribute('error.type', 'LOCK_TIMEOUT').setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
      failed: (error) => {
        const message = error instanceof Error ? error.message : String(error);
        span.setAttributes({ 'distributed_lock.acquired': false, 'error.type': typeOf(error) });
        span.setStatus({ code: SpanStatusCode.ERROR, message }).end();
      },
    };
  }

  #hold(hold: TracedHold, template: string, attributes: Attributes, caller: Context): void {
    this.#holds.set(idOf(hold), this.#tracer.startSpan(`hold ${template}`, { attributes }, caller));
  }

  /** Inside a re-entry the span of the caller stays the active one. */
  #run<T>(hold: TracedHold, work: () => T): T {
    const span = this.#holds.get(idOf(hold));
    const caller = context.active();
    const inside = spansAround(caller);
    if (!span || inside.includes(span)) return work();
    return context.with(trace.setSpan(caller, span).setValue(INSIDE, [...inside, span]), work);
  }

  #end(hold: Pick<TracedHold, 'key' | 'fencingToken'>, lostBy?: string): void {
    const id = idOf(hold);
    const span = this.#holds.get(id);
    this.#holds.delete(id);
    if (lostBy !== undefined) {
      span?.setAttribute('error.type', 'LOCK_LOST').setStatus({ code: SpanStatusCode.ERROR, message: lostBy });
    }
    span?.end();
  }
}

function idOf({ key, fencingToken }: Pick<TracedHold, 'key' | 'fencingToken'>): string {
  return `${fencingToken} ${key}`;
}

function spansAround(caller: Context): readonly unknown[] {
  const inside = caller.getValue(INSIDE);
  return Array.isArray(inside) ? inside : [];
}

function typeOf(error: unknown): string {
  if (isLockError(error)) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}
