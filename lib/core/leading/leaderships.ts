import { assertKey } from '../contract/key.js';
import { LockConfigurationError, LockShutdownError, quote } from '../contract/errors.js';
import { AbortListener } from '../time/abort-listener.js';
import { refuseOption, shownOption } from '../kit/option-checks.js';
import type { OptionResolver } from '../options/option-resolver.js';
import { assertLeadOptions, type LeaderWork, type LeadOptions, LEADER_LOCK_OPTIONS } from './lead-options.js';
import type { AcquisitionParts } from '../acquiring/acquisition.js';
import { Leadership } from './leadership.js';

const DEFAULT_GRACE_MS = 5_000;

/** Candidacies of one service. */
export class Leaderships {
  /** Leaderships by key, with the namespace. */
  readonly #byKey = new Map<string, Leadership>();
  #isEnding = false;

  constructor(
    private readonly parts: AcquisitionParts,
    private readonly optionResolver: OptionResolver,
    private readonly prefix: string,
  ) {}

  /** Begins a candidacy, see `LockService.lead`. */
  beginCandidacy(key: string, work: LeaderWork, leadOptions: LeadOptions = {}): Leadership {
    assertKey(key);
    if (this.#isEnding || this.parts.service.stopSignal.aborted) throw new LockShutdownError(key);
    if (typeof work !== 'function') refuseOption('work', `must be a function; it was ${shownOption(work)}`);
    assertLeadOptions(leadOptions);
    const { graceMs = DEFAULT_GRACE_MS, signal, ...acquireOptions } = leadOptions;
    const { signal: _, ...options } = this.optionResolver.resolveForReuse({
      ...acquireOptions,
      ...LEADER_LOCK_OPTIONS,
      ...(signal ? { signal } : {}),
    });
    signal?.throwIfAborted();
    const fullKey = this.prefix + key;
    if (this.#byKey.has(fullKey)) {
      throw new LockConfigurationError(
        `this service stands for ${quote(key)} already: one method or call leads under a key`,
        'key',
        key,
      );
    }
    const leadership = new Leadership(key, this.parts, { fullKey, work, options, graceMs });
    this.#byKey.set(fullKey, leadership);
    const listener = signal && new AbortListener(signal, () => void leadership.close());
    void this.#unregisterAtEnd(fullKey, leadership, listener);
    return leadership;
  }

  get(key: string): Leadership | undefined {
    return this.#byKey.get(this.prefix + key);
  }

  async #unregisterAtEnd(
    fullKey: string,
    { endPromise }: Leadership,
    listener: AbortListener | undefined,
  ): Promise<void> {
    await endPromise;
    this.#byKey.delete(fullKey);
    listener?.end();
  }

  /** Returns whether this service leads under `key`, with the namespace, or without an argument, under any key. */
  haveLock(key?: string): boolean {
    const candidates = key === undefined ? [...this.#byKey.values()] : [this.#byKey.get(key)];
    return candidates.some((leadership) => leadership?.hasLock);
  }

  /** Ends all candidacies. Resolves when their work has ended, or when the grace time of each is over. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(Array.from(this.#byKey.values(), (leadership) => leadership.endCandidacy('shutdown')));
  }
}
