import { assertKey } from '../contract/key.js';
import { LockConfigurationError, LockShutdownError, quote } from '../contract/errors.js';
import { AbortListener } from '../time/abort-listener.js';
import { refuseOption, shownOption } from '../kit/option-checks.js';
import type { OptionResolver } from '../options/option-resolver.js';
import { assertLeadOptions, type LeaderWork, type LeadOptions, OFFICE } from './lead-options.js';
import type { AcquisitionParts } from '../acquiring/acquisition.js';
import { Leadership } from './leadership.js';

const GRACE_MS = 5_000;

/** The offices that one service stands for. */
export class Leaderships {
  /** By key, with the namespace. */
  readonly #standing = new Map<string, Leadership>();
  #ended = false;

  constructor(
    private readonly parts: AcquisitionParts,
    private readonly options: OptionResolver,
    private readonly prefix: string,
  ) {}

  /** See `LockService.lead`. */
  stand(key: string, work: LeaderWork, given: LeadOptions = {}): Leadership {
    assertKey(key);
    if (this.#ended || this.parts.service.stopped.aborted) throw new LockShutdownError(key);
    if (typeof work !== 'function') refuseOption('work', `must be a function; it was ${shownOption(work)}`);
    assertLeadOptions(given);
    const { graceMs = GRACE_MS, signal, ...asked } = given;
    const { signal: _, ...options } = this.options.resolve({ ...asked, ...OFFICE, ...(signal ? { signal } : {}) });
    signal?.throwIfAborted();
    const fullKey = this.prefix + key;
    if (this.#standing.has(fullKey)) {
      throw new LockConfigurationError(
        `this service stands for ${quote(key)} already: one method or call leads under a key`,
        'key',
        key,
      );
    }
    const leadership = new Leadership(key, this.parts, { fullKey, work, options, graceMs });
    this.#standing.set(fullKey, leadership);
    const listener = signal && new AbortListener(signal, () => void leadership.close());
    void this.#forget(fullKey, leadership, listener);
    return leadership;
  }

  get(key: string): Leadership | undefined {
    return this.#standing.get(this.prefix + key);
  }

  async #forget(fullKey: string, { over }: Leadership, listener: AbortListener | undefined): Promise<void> {
    await over;
    this.#standing.delete(fullKey);
    listener?.end();
  }

  /** Whether a term of these has the key, with the namespace; without a key: any key. */
  hold(key?: string): boolean {
    const asked = key === undefined ? [...this.#standing.values()] : [this.#standing.get(key)];
    return asked.some((leadership) => leadership?.holds);
  }

  /** Tells all work to end. Resolves when it has, or when the grace time of each is over. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(Array.from(this.#standing.values(), (leadership) => leadership.leave('shutdown')));
  }
}
