import {
  errorText,
  failureKindOf,
  type KeyHolder,
  type KeyWaiter,
  type LeaseState,
  type LockEvent,
  type LockService,
  type LockSnapshot,
} from '../core/index.js';
import type { KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { ContentionStatistics } from './contention.js';
import { createInspectedEvent, type EventHistory } from './event-history.js';
import type { InspectedBackend, InspectedHolder, InspectedKey, InspectedParty } from './inspector-state.js';

/** Maximum number of keys on the page. Each key costs the server a query, and nobody reads a longer list. */
const MAX_KEYS = 1_000;
/** Maximum number of listed keys that a search reads. A search for a complete key reads that key in any case. */
const MAX_SCANNED_KEYS = 100_000;
const MAX_CONCURRENT_QUERIES = 16;

export class InspectedService {
  readonly #contention = new ContentionStatistics();

  constructor(
    readonly name: string,
    readonly locks: LockService,
    private readonly templateNames: KeyTemplateNames,
    private readonly history: EventHistory,
  ) {}

  async recordEvents(): Promise<void> {
    for await (const event of this.locks.events({ limit: 10_000 })) this.#recordEvent(event);
  }

  async readBackend(search: string): Promise<InspectedBackend> {
    const { locks, name } = this;
    const holds = new Map(locks.inspect().map((hold) => [this.#removeKeyPrefix(hold.key), hold]));
    const searchResult = await this.#findKeys(search, holds);
    const readResult = await this.#readKeys([...searchResult.keys], holds);
    const error = searchResult.error ?? readResult.error;
    return {
      name,
      kind: locks.backend.name,
      guarantee: locks.backend.guarantee,
      health: locks.health,
      lists: locks.backend.store.keys !== undefined,
      keys: readResult.keys,
      more: searchResult.hasMoreKeys,
      ...(error === undefined ? {} : { error }),
      templates: this.#contention.listTemplates(new Date().getTime()),
    };
  }

  /** Returns the keys that contain `search`: keys that this process holds, then keys that the server lists. */
  async #findKeys(search: string, holds: ReadonlyMap<string, unknown>) {
    const heldKeys = [...holds.keys()].filter((key) => key.includes(search));
    const keys = new Set(heldKeys.slice(0, MAX_KEYS));
    const hasMoreKeys = heldKeys.length > MAX_KEYS;
    if (search !== '') keys.add(search);
    if (!this.locks.backend.store.keys || hasMoreKeys) return { keys, hasMoreKeys };
    let scannedCount = 0;
    try {
      for await (const key of this.locks.keys()) {
        scannedCount += 1;
        const isNewKey = key.includes(search) && !keys.has(key);
        if (scannedCount > MAX_SCANNED_KEYS || (isNewKey && keys.size >= MAX_KEYS)) return { keys, hasMoreKeys: true };
        if (isNewKey) keys.add(key);
      }
      return { keys, hasMoreKeys: false };
    } catch (error) {
      return { keys, hasMoreKeys: false, error: errorText(error) };
    }
  }

  /**
   * Reads the state of each key, until the server fails. A value that cannot be read, such as one that another program
   * wrote, does not end the reading.
   */
  async #readKeys(keys: readonly string[], holds: ReadonlyMap<string, LockSnapshot>) {
    const inspectedKeys: InspectedKey[] = [];
    const keyErrors: string[] = [];
    let serverError: string | undefined;
    const readKey = async (key: string): Promise<LeaseState> => {
      try {
        return serverError === undefined ? await this.locks.look(key) : {};
      } catch (cause) {
        if (failureKindOf(cause) === 'value') keyErrors.push(errorText(cause));
        else serverError ??= errorText(cause);
        return {};
      }
    };
    const remainingKeys = keys.values();
    /** Concurrent calls of this function share the iterator. Hence each key is read once. */
    const readKeysOneByOne = async (): Promise<void> => {
      for (const key of remainingKeys) {
        const hold = holds.get(key);
        const state = await readKey(key);
        if (state.holder || (state.waiters ?? []).length > 0 || hold)
          inspectedKeys.push(this.#createInspectedKey(key, hold, state));
      }
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT_QUERIES }, readKeysOneByOne));
    const error = serverError ?? describeKeyErrors(keyErrors);
    return { keys: inspectedKeys.toSorted((a, b) => (a.key < b.key ? -1 : 1)), error };
  }

  #createInspectedKey(key: string, hold: LockSnapshot | undefined, state: LeaseState): InspectedKey {
    const { holder, holders, waiters = [] } = state;
    return {
      key,
      template: this.templateNames.nameOf(key),
      ...(holder ? { holder: toInspectedHolder(holder) } : {}),
      ...(holders ? { holders: holders.map(toInspectedHolder) } : {}),
      waiters: waiters.map(toInspectedParty),
      ...(hold ? { here: toInspectedHold(hold) } : {}),
    };
  }

  #recordEvent(event: LockEvent): void {
    const now = new Date();
    const key = 'key' in event && event.key !== '' ? this.#removeKeyPrefix(event.key) : undefined;
    if (key !== undefined) this.#contention.addEvent(this.templateNames.nameOf(key), event, now.getTime());
    this.history.addEvent(createInspectedEvent(this.name, key, event, now));
  }

  #removeKeyPrefix(key: string): string {
    return key.slice(this.locks.keyPrefix.length);
  }
}

function describeKeyErrors([firstError, ...others]: readonly string[]): string | undefined {
  if (firstError === undefined || others.length === 0) return firstError;
  return `${firstError} (${others.length} more ${others.length === 1 ? 'key' : 'keys'})`;
}

function toInspectedHold({
  state,
  heldMs,
  waitersHere,
  leads,
  fencingToken,
}: LockSnapshot): NonNullable<InspectedKey['here']> {
  return { state, heldMs: Math.round(heldMs), waitersHere, leads, fencingToken: String(fencingToken) };
}

function toInspectedHolder(holder: KeyHolder): InspectedHolder {
  const { fencingToken, leftMs } = holder;
  return {
    ...toInspectedParty(holder),
    ...(fencingToken === undefined ? {} : { fencingToken: String(fencingToken) }),
    ...(leftMs === undefined ? {} : { leftMs: Math.round(leftMs) }),
  };
}

function toInspectedParty({ owner, host, pid, label, since, share }: KeyWaiter): InspectedParty {
  return {
    owner,
    ...(host === undefined ? {} : { host }),
    ...(pid === undefined ? {} : { pid }),
    ...(label === undefined ? {} : { label }),
    ...(since ? { since: since.toISOString() } : {}),
    ...(share ? { share: share.mode === 'shared' ? 'shared' : `${share.permits} of ${share.limit} permits` } : {}),
  };
}
