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
import { TemplateLabels } from '../metrics/template-labels.js';

/** Context key of the `hold` spans of all locks that the current work runs under. */
const HOLD_SPANS_KEY = createContextKey('nestjs-distributed-lock: holds');

export interface LockSpansOptions {
  /** Provider of the tracer. @default the global provider */
  readonly tracerProvider?: TracerProvider;
  /**
   * Function that returns a template for a key, for the names of spans.
   * @default the first word, and `*` for the rest
   */
  readonly templateOf?: (key: string) => string;
  /** Templates that always have names of their own. Only the first 200 other templates have one. @default none */
  readonly templates?: ReadonlySet<string>;
}

/**
 * Records spans of a lock service. `acquire <template>` lasts from the call until the caller has the lock,
 * `hold <template>` from then until the caller's release or the loss. Both are children of the caller's span. The work
 * that `withLock`, `@Locked` and `LockHandle.run` run under a lock is a child of the `hold` span. Re-entry has no spans
 * of its own.
 */
export class LockSpans implements LockObserver {
  readonly tracer: LockTracer;
  readonly #spanTracer: Tracer;
  readonly #templateLabels: TemplateLabels;
  /** Spans of callers, by the id of the hold that they share, and by the caller's own `TracedHold`. */
  readonly #holdSpans = new Map<string, Map<TracedHold, Span>>();

  constructor({ tracerProvider, templateOf, templates }: LockSpansOptions = {}) {
    this.#spanTracer = (tracerProvider ?? trace).getTracer('nestjs-distributed-lock');
    this.#templateLabels = new TemplateLabels(templateOf, templates);
    this.tracer = {
      begin: (call) => this.#startAcquireSpan(call),
      enter: (hold) => this.#startHoldSpan(hold),
      run: (hold, work) => this.#runUnderHold(hold, work),
      leave: (hold) => this.#endHoldSpan(hold),
    };
  }

  jeopardy(event: LockEvents['jeopardy']): void {
    for (const span of this.#getHoldSpans(event))
      span.addEvent('jeopardy', { 'distributed_lock.left_ms': event.leftMs });
  }

  safe(event: LockEvents['safe']): void {
    for (const span of this.#getHoldSpans(event)) span.addEvent('safe');
  }

  lost(event: LockEvents['lost']): void {
    for (const span of this.#getHoldSpans(event)) {
      span
        .setAttribute('error.type', 'LOCK_LOST')
        .setStatus({ code: SpanStatusCode.ERROR, message: event.reason })
        .end();
    }
    this.#holdSpans.delete(getHoldId(event));
  }

  #startAcquireSpan({ key, backend, waitMs }: TracedCall): CallTrace {
    const attributes: Attributes = { 'distributed_lock.key': key, 'distributed_lock.backend': backend };
    const span = this.#spanTracer.startSpan(`acquire ${this.#templateLabels.labelFor(key)}`, { attributes });
    return {
      granted: (hold) => {
        span.setAttributes({ ...getHoldAttributes(hold), 'distributed_lock.acquired': true }).end();
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

  #startHoldSpan(hold: TracedHold): void {
    const id = getHoldId(hold);
    const span = this.#spanTracer.startSpan(`hold ${this.#templateLabels.labelFor(hold.key)}`, {
      attributes: getHoldAttributes(hold),
    });
    const callerSpans = this.#holdSpans.get(id) ?? new Map<TracedHold, Span>();
    this.#holdSpans.set(id, callerSpans.set(hold, span));
  }

  /** Runs `work` under the span of `hold`. Work that runs under this span already keeps its active span. */
  #runUnderHold<T>(hold: TracedHold, work: () => T): T {
    const span = this.#holdSpans.get(getHoldId(hold))?.get(hold);
    const callerContext = context.active();
    const outerSpans = getOuterHoldSpans(callerContext);
    if (!span || outerSpans.includes(span)) return work();
    return context.with(trace.setSpan(callerContext, span).setValue(HOLD_SPANS_KEY, [...outerSpans, span]), work);
  }

  #endHoldSpan(hold: TracedHold): void {
    const id = getHoldId(hold);
    const callerSpans = this.#holdSpans.get(id);
    callerSpans?.get(hold)?.end();
    callerSpans?.delete(hold);
    if (callerSpans?.size === 0) this.#holdSpans.delete(id);
  }

  #getHoldSpans(event: Pick<TracedHold, 'key' | 'fencingToken'>): Iterable<Span> {
    return this.#holdSpans.get(getHoldId(event))?.values() ?? [];
  }
}

function getHoldId({ key, fencingToken }: Pick<TracedHold, 'key' | 'fencingToken'>): string {
  return `${fencingToken} ${key}`;
}

function getHoldAttributes({ key, backend, fencingToken, handOffCount }: TracedHold): Attributes {
  return {
    'distributed_lock.key': key,
    'distributed_lock.backend': backend,
    'distributed_lock.fencing_token': String(fencingToken),
    'distributed_lock.hand_off': handOffCount > 0,
  };
}

function getOuterHoldSpans(callerContext: Context): readonly unknown[] {
  const spans = callerContext.getValue(HOLD_SPANS_KEY);
  return Array.isArray(spans) ? spans : [];
}

function getErrorType(error: unknown): string {
  if (isLockError(error)) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}
