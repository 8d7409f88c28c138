import { assertKey } from '../contract/key.js';
import { LockConfigurationError, LockShutdownError, quote } from '../contract/errors.js';
import { AbortListener } from '../time/abort-listener.js';
import { refuseOption, shownOption } from '../kit/option-checks.js';
import type { OptionResolver } from '../options/option-resolver.js';
import { assertLeadOptions, type LeaderWork, type LeadOptions, LEADER_LOCK_OPTIONS } from './lead-options.js';
import type { AcquisitionDependencies } from '../acquiring/acquisition.js';
import { Leadership } from './leadership.js';

const DEFAULT_GRACE_MS = 5_000;

/** Leaderships for which one service is a candidate, at most one for each key. */
export class Leaderships {
  readonly #byFullKey = new Map<string, Leadership>();
  #isEnding = false;

  constructor(
    private readonly dependencies: AcquisitionDependencies,
    private readonly optionResolver: OptionResolver,
    private readonly keyPrefix: string,
  ) {}

  beginCandidacy(key: string, work: LeaderWork, leadOptions: LeadOptions = {}): Leadership {
    assertKey(key);
    if (this.#isEnding || this.dependencies.service.stopSignal.aborted)
      throw new LockShutdownError(this.keyPrefix + key);
    if (typeof work !== 'function') refuseOption('work', `must be a function; it was ${shownOption(work)}`);
    assertLeadOptions(leadOptions);
    const { graceMs = DEFAULT_GRACE_MS, signal, ...acquireOptions } = leadOptions;
    const { signal: _, ...options } = this.optionResolver.resolveForReuse({
      ...acquireOptions,
      ...LEADER_LOCK_OPTIONS,
      ...(signal ? { signal } : {}),
    });
    signal?.throwIfAborted();
    const fullKey = this.keyPrefix + key;
    if (this.#byFullKey.has(fullKey)) {
      throw new LockConfigurationError(
        `this service stands for ${quote(key)} already: one method or call leads under a key`,
        'key',
        key,
      );
    }
    const leadership = new Leadership(key, this.dependencies, { fullKey, work, options, graceMs });
    this.#byFullKey.set(fullKey, leadership);
    const listener = signal && new AbortListener(signal, () => void leadership.close());
    void this.#unregisterAtEnd(fullKey, leadership, listener);
    return leadership;
  }

  get(key: string): Leadership | undefined {
    return this.#byFullKey.get(this.keyPrefix + key);
  }

  async #unregisterAtEnd(
    fullKey: string,
    { endPromise }: Leadership,
    listener: AbortListener | undefined,
  ): Promise<void> {
    await endPromise;
    this.#byFullKey.delete(fullKey);
    listener?.end();
  }

  /** @param key with the namespace; any key if left out */
  haveLock(key?: string): boolean {
    const leaderships = key === undefined ? [...this.#byFullKey.values()] : [this.#byFullKey.get(key)];
    return leaderships.some((leadership) => leadership?.hasLock);
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(Array.from(this.#byFullKey.values(), (leadership) => leadership.endCandidacy('shutdown')));
  }
}
