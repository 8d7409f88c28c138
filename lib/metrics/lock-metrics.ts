import { type Aggregator, Counter, Gauge, Histogram, register as globalRegister, type Registry } from 'prom-client';
import type { LockObserver, LockService } from '../core/index.js';
import { TemplateLabels } from './template-labels.js';

export interface LockMetricsOptions {
  /** Registry that gets the metrics. @default the global registry of prom-client */
  readonly register?: Registry;
  /** Text before the name of each metric. @default 'distributed_lock_' */
  readonly prefix?: string;
  /** Upper bounds of `wait_seconds`, in seconds. @default 1 ms to 60 s */
  readonly waitBuckets?: readonly number[];
  /** Upper bounds of `hold_seconds`, in seconds. @default 1 ms to an hour */
  readonly holdBuckets?: readonly number[];
}

export interface ObserveOptions {
  /** Label `backend`. @default the backend's name */
  readonly backend?: string;
  /**
   * Function that returns the label `template` for a key without its namespace.
   * @default the first word, and `*` for the rest
   */
  readonly templateOf?: (key: string) => string;
  /** Templates that always have a label of their own. Only the first 200 other templates have one. @default none */
  readonly templates?: ReadonlySet<string>;
}

const DEFAULT_WAIT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const DEFAULT_HOLD_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];

const DEFAULT_PREFIX = 'distributed_lock_';
const LABELS = ['backend', 'template'] as const;
type Labels = Record<(typeof LABELS)[number], string>;
const metricsByRegistry = new WeakMap<Registry, Map<string, LockMetrics>>();

interface LabelledService {
  readonly service: LockService;
  readonly backend: string;
  readonly getLabels: (key: string) => Labels;
  /** Number of callers that wait now, by template. */
  readonly waitingCounts: Map<string, number>;
}

interface ObservedService extends LabelledService {
  readonly stop: () => void;
  /** Number of calls of `observe` whose returned functions have not been called. */
  activeCallCount: number;
}

/**
 * Metrics of the locks of a process, one set for each registry and prefix. The labels are the backend and the template
 * of a key, never the key itself.
 */
export class LockMetrics {
  readonly #observedServices = new Map<LockService, ObservedService>();
  readonly #acquisitions;
  readonly #waits;
  readonly #holds;
  readonly #timeouts;
  readonly #losses;
  readonly #lateRenewals;
  readonly #failures;

  /**
   * Returns the metrics of a registry and prefix. Several applications of a process share them. The first call creates
   * them, and the first call after the registry was cleared creates them anew.
   */
  static of(options: LockMetricsOptions = {}): LockMetrics {
    const { register = globalRegister, prefix = DEFAULT_PREFIX } = options;
    const metricsByPrefix = metricsByRegistry.get(register) ?? new Map<string, LockMetrics>();
    const existingMetrics = metricsByPrefix.get(prefix);
    const metrics =
      existingMetrics && existingMetrics.#isRegisteredIn(register) ? existingMetrics : new LockMetrics(options);
    metricsByRegistry.set(register, metricsByPrefix.set(prefix, metrics));
    return metrics;
  }

  private constructor(options: LockMetricsOptions) {
    const { register = globalRegister, prefix = DEFAULT_PREFIX } = options;
    const { waitBuckets = DEFAULT_WAIT_BUCKETS, holdBuckets = DEFAULT_HOLD_BUCKETS } = options;
    const registers = [register];
    const createCounter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Counter({ name: `${prefix}${name}_total`, help, labelNames, registers });
    const createHistogram = (name: string, help: string, buckets: readonly number[]) =>
      new Histogram({ name: `${prefix}${name}_seconds`, help, labelNames: LABELS, buckets: [...buckets], registers });
    this.#acquisitions = createCounter('acquisitions', 'Locks that callers got', [...LABELS, 'from']);
    this.#waits = createHistogram('wait', 'How long callers waited for the locks that they got', waitBuckets);
    this.#holds = createHistogram('hold', 'How long locks were held', holdBuckets);
    this.#timeouts = createCounter('timeouts', 'Callers who waited in vain', LABELS);
    this.#losses = createCounter('losses', 'Locks that were lost before their work was done', [...LABELS, 'reason']);
    this.#lateRenewals = createCounter('late_renewals', 'Renewals that failed or were late', LABELS);
    this.#failures = createCounter('backend_failures', 'Requests that failed', ['backend', 'operation']);
    const createGauge = (name: string, help: string, collect: (this: Gauge) => void, aggregator: Aggregator = 'sum') =>
      new Gauge({ name: prefix + name, help, labelNames: LABELS, registers, collect, aggregator });
    const observedServices = this.#observedServices;
    createGauge('waiting', 'Callers who wait now', function () {
      this.reset();
      for (const { backend, waitingCounts } of observedServices.values())
        for (const [template, count] of waitingCounts) this.inc({ backend, template }, count);
    });
    createGauge('held', 'Locks that are held now', function () {
      this.reset();
      for (const { service, getLabels } of observedServices.values())
        for (const { key } of service.inspect()) this.inc(getLabels(key));
    });
    createGauge(
      'backend_up',
      '1: the backend answers; 0: it does not, or was not asked yet',
      function () {
        this.reset();
        const backendsNotUp = new Set<string>();
        for (const { service, backend } of observedServices.values()) {
          if (service.health.status !== 'up') backendsNotUp.add(backend);
          this.set({ backend }, backendsNotUp.has(backend) ? 0 : 1);
        }
      },
      'min',
    );
  }

  /**
   * Records the events of `service` until the returned function is called. A service that is observed already is
   * recorded once, with the labels of its first caller, until every caller has stopped.
   */
  observe(service: LockService, options: ObserveOptions = {}): () => void {
    const observedService = this.#observedServices.get(service) ?? this.#startObserving(service, options);
    observedService.activeCallCount += 1;
    let hasStopped = false;
    return () => {
      if (hasStopped) return;
      hasStopped = true;
      observedService.activeCallCount -= 1;
      if (observedService.activeCallCount > 0) return;
      observedService.stop();
      this.#observedServices.delete(service);
    };
  }

  #isRegisteredIn(register: Registry): boolean {
    const registeredMetrics: readonly unknown[] = register.getMetricsAsArray();
    return [this.#acquisitions, this.#waits, this.#holds].some((metric) => registeredMetrics.includes(metric));
  }

  #startObserving(service: LockService, options: ObserveOptions): ObservedService {
    const { backend = service.backend.name, templateOf, templates: knownTemplates } = options;
    const templateLabels = new TemplateLabels(templateOf, knownTemplates);
    const getLabels = (key: string): Labels => ({
      backend,
      template: templateLabels.labelFor(key.slice(service.keyPrefix.length)),
    });
    const labelledService = { service, backend, getLabels, waitingCounts: new Map<string, number>() };
    const stop = service.observe(this.#createObserver(labelledService));
    const observedService = { ...labelledService, stop, activeCallCount: 0 };
    this.#observedServices.set(service, observedService);
    return observedService;
  }

  #createObserver({ backend, getLabels, waitingCounts }: LabelledService): LockObserver {
    const addToWaitingCount = (template: string, change: number): void =>
      void waitingCounts.set(template, (waitingCounts.get(template) ?? 0) + change);
    return {
      acquired: ({ key, from, waitedMs }) => {
        const labels = getLabels(key);
        this.#acquisitions.inc({ ...labels, from });
        if (from !== 're-entry') this.#waits.observe(labels, waitedMs / 1_000);
      },
      released: ({ key, heldMs }) => this.#holds.observe(getLabels(key), heldMs / 1_000),
      timedOut: ({ key }) => this.#timeouts.inc(getLabels(key)),
      jeopardy: ({ key }) => this.#lateRenewals.inc(getLabels(key)),
      lost: ({ key, heldMs, reason }) => {
        const labels = getLabels(key);
        this.#losses.inc({ ...labels, reason });
        this.#holds.observe(labels, heldMs / 1_000);
      },
      backendFailed: ({ operation }) => this.#failures.inc({ backend, operation }),
      tracer: {
        begin: ({ key }) => {
          const { template } = getLabels(key);
          const endWait = (): void => addToWaitingCount(template, -1);
          addToWaitingCount(template, 1);
          return { granted: endWait, refused: endWait, failed: endWait };
        },
      },
    };
  }
}
