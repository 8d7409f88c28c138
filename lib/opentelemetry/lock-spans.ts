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
import { getFirstWordName } from '../nest/locked/key-template-names.js';

/** Context key of the `hold` spans of all locks that the current work runs under. */
const HOLD_SPANS = createContextKey('nestjs-distributed-lock: holds');

export interface LockSpansOptions {
  /** Provider of the tracer. @default the global provider */
  readonly tracerProvider?: TracerProvider;
  /** Function that returns a template for a key, for the names of spans. @default the first word, and `*` for the rest */
  readonly templateOf?: (key: string) => string;
}

/**
 * Records spans of a lock service. `acquire <template>` lasts from the call until the caller has the lock, `hold <template>`
 * from then until the release or the loss. Both are children of the caller's span. The work that `withLock`, `@Locked` and
 * `LockHandle.run` run under a lock is a child of the `hold` span. Re-entry has no spans of its own.
 */
export class LockSpans implements LockObserver {
  readonly tracer: LockTracer;
  readonly #tracer: Tracer;
  readonly #templateOf: (key: string) => string;
  readonly #holdSpans = new Map<string, Span>();

  constructor({ tracerProvider, templateOf }: LockSpansOptions = {}) {
    this.#tracer = (tracerProvider ?? trace).getTracer('nestjs-distributed-lock');
    this.#templateOf = templateOf ?? getFirstWordName;
    this.tracer = {
      begin: (call) => this.#startAcquireSpan(call),
      run: (hold, work) => this.#runUnderHold(hold, work),
    };
  }

  released({ key, fencingToken }: LockEvents['released']): void {
    this.#endHoldSpan({ key, fencingToken });
  }

  jeopardy({ key, fencingToken, leftMs }: LockEvents['jeopardy']): void {
    this.#holdSpans.get(getHoldId({ key, fencingToken }))?.addEvent('jeopardy', { 'distributed_lock.left_ms': leftMs });
  }

  safe({ key, fencingToken }: LockEvents['safe']): void {
    this.#holdSpans.get(getHoldId({ key, fencingToken }))?.addEvent('safe');
  }

  lost({ key, fencingToken, reason }: LockEvents['lost']): void {
    this.#endHoldSpan({ key, fencingToken }, reason);
  }

  #startAcquireSpan({ key, backend, waitMs }: TracedCall): CallTrace {
    const callerContext = context.active();
    const template = this.#templateOf(key);
    const attributes: Attributes = { 'distributed_lock.key': key, 'distributed_lock.backend': backend };
    const span = this.#tracer.startSpan(`acquire ${template}`, { attributes }, callerContext);
    return {
      granted: (hold) => {
        const holdAttributes: Attributes = {
          'distributed_lock.fencing_token': String(hold.fencingToken),
          'distributed_lock.hand_off': hold.handOffCount > 0,
        };
        span.setAttributes({ ...holdAttributes, 'distributed_lock.acquired': true }).end();
        this.#startHoldSpan(hold, template, { ...attributes, ...holdAttributes }, callerContext);
      },
      refused: () => {
        span.setAttribute('distributed_lock.acquired', false);
        if (waitMs > 0) span.setAttribute('error.type', 'LOCK_TIMEOUT').setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
      failed: (error) => {
        const message = error instanceof Error ? error.message : String(error);
        span.setAttributes({ 'distributed_lock.acquired': false, 'error.type': getErrorType(error) });
        span.setStatus({ code: SpanStatusCode.ERROR, message }).end();
      },
    };
  }

  #startHoldSpan(hold: TracedHold, template: string, attributes: Attributes, callerContext: Context): void {
    this.#holdSpans.set(getHoldId(hold), this.#tracer.startSpan(`hold ${template}`, { attributes }, callerContext));
  }

  /** At a re-entry, the active span stays as it is. */
  #runUnderHold<T>(hold: TracedHold, work: () => T): T {
    const span = this.#holdSpans.get(getHoldId(hold));
    const callerContext = context.active();
    const outerSpans = getHoldSpans(callerContext);
    if (!span || outerSpans.includes(span)) return work();
    return context.with(trace.setSpan(callerContext, span).setValue(HOLD_SPANS, [...outerSpans, span]), work);
  }

  #endHoldSpan(hold: Pick<TracedHold, 'key' | 'fencingToken'>, lossReason?: string): void {
    const id = getHoldId(hold);
    const span = this.#holdSpans.get(id);
    this.#holdSpans.delete(id);
    if (lossReason !== undefined) {
      span?.setAttribute('error.type', 'LOCK_LOST').setStatus({ code: SpanStatusCode.ERROR, message: lossReason });
    }
    span?.end();
  }
}

function getHoldId({ key, fencingToken }: Pick<TracedHold, 'key' | 'fencingToken'>): string {
  return `${fencingToken} ${key}`;
}

function getHoldSpans(callerContext: Context): readonly unknown[] {
  const spans = callerContext.getValue(HOLD_SPANS);
  return Array.isArray(spans) ? spans : [];
}

function getErrorType(error: unknown): string {
  if (isLockError(error)) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}
