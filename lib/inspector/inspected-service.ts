import {
  errorText,
  type KeyHolder,
  type KeyWaiter,
  type LeaseState,
  type LockEvent,
  type LockService,
  type LockSnapshot,
} from '../core/index.js';
import type { KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { Contention } from './contention.js';
import { type EventHistory, inspected } from './event-history.js';
import type { InspectedBackend, InspectedHolder, InspectedKey, InspectedParty } from './inspector-state.js';

/** More than that nobody reads, and each takes a question. */
const MOST_KEYS = 1_000;
/** Who searches gets an answer soon, of however many keys. The key itself is always found. */
const MOST_SCANNED = 100_000;
/** Questions under way at a time. */
const WORKERS = 16;

/** One lock service, and what its events told. */
export class InspectedService {
  readonly #contention = new Contention();

  constructor(
    readonly name: string,
    readonly locks: LockService,
    private readonly names: KeyTemplateNames,
    private readonly history: EventHistory,
  ) {}

  /** Reads the events, until the service ends. */
  async follow(): Promise<void> {
    for await (const event of this.locks.events({ limit: 10_000 })) this.#note(event);
  }

  async read(search: string): Promise<InspectedBackend> {
    const { locks, name } = this;
    const here = new Map(locks.inspect().map((hold) => [this.#keyOf(hold.key), hold]));
    const found = await this.#find(search, here);
    const looked = await this.#look([...found.keys], here);
    const error = found.error ?? looked.error;
    return {
      name,
      kind: locks.backend.name,
      guarantee: locks.backend.guarantee,
      health: locks.health,
      lists: locks.backend.store.keys !== undefined,
      keys: looked.keys,
      more: found.more,
      ...(error === undefined ? {} : { error }),
      templates: this.#contention.templates(new Date().getTime()),
    };
  }

  /** Those held here need no server. */
  async #find(search: string, here: ReadonlyMap<string, unknown>) {
    const keys = new Set([...here.keys()].filter((key) => key.includes(search)).slice(0, MOST_KEYS));
    let more = keys.size < here.size && search === '';
    if (search !== '') keys.add(search);
    if (!this.locks.backend.store.keys) return { keys, more };
    let scanned = 0;
    try {
      for await (const key of this.locks.keys()) {
        scanned += 1;
        more = scanned > MOST_SCANNED || (keys.size >= MOST_KEYS && key.includes(search) && !keys.has(key));
        if (more) break;
        if (key.includes(search)) keys.add(key);
      }
      return { keys, more };
    } catch (error) {
      return { keys, more: false, error: errorText(error) };
    }
  }

  /** The first failure ends it: a server that is down is not asked a thousand times. */
  async #look(keys: readonly string[], here: ReadonlyMap<string, LockSnapshot>) {
    const rows: InspectedKey[] = [];
    let error: string | undefined;
    const left = keys.values();
    const work = async (): Promise<void> => {
      for (const key of left) {
        const hold = here.get(key);
        try {
          const state: LeaseState = error === undefined ? await this.locks.look(key) : {};
          if (state.holder || (state.waiters ?? []).length > 0 || hold) rows.push(this.#row(key, hold, state));
        } catch (cause) {
          error ??= errorText(cause);
          if (hold) rows.push(this.#row(key, hold, {}));
        }
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    return { keys: rows.toSorted((a, b) => (a.key < b.key ? -1 : 1)), error };
  }

  #row(key: string, hold: LockSnapshot | undefined, state: LeaseState): InspectedKey {
    const { holder, holders, waiters = [] } = state;
    return {
      key,
      template: this.names.nameOf(key),
      ...(holder ? { holder: holderOf(holder) } : {}),
      ...(holders ? { holders: holders.map(holderOf) } : {}),
      waiters: waiters.map(partyOf),
      ...(hold ? { here: hereOf(hold) } : {}),
    };
  }

  #note(event: LockEvent): void {
    const now = new Date();
    const key = 'key' in event && event.key !== '' ? this.#keyOf(event.key) : undefined;
    if (key !== undefined) this.#contention.add(this.names.nameOf(key), event, now.getTime());
    this.history.add(inspected(this.name, key, event, now));
  }

  #keyOf(key: string): string {
    return key.slice(this.locks.keyPrefix.length);
  }
}

function hereOf({ state, heldMs, waitersHere, leads, fencingToken }: LockSnapshot): NonNullable<InspectedKey['here']> {
  return { state, heldMs: Math.round(heldMs), waitersHere, leads, fencingToken: String(fencingToken) };
}

function holderOf(holder: KeyHolder): InspectedHolder {
  const { fencingToken, leftMs } = holder;
  return {
    ...partyOf(holder),
    ...(fencingToken === undefined ? {} : { fencingToken: String(fencingToken) }),
    ...(leftMs === undefined ? {} : { leftMs: Math.round(leftMs) }),
  };
}

function partyOf({ owner, host, pid, label, since, share }: KeyWaiter): InspectedParty {
  return {
    owner,
    ...(host === undefined ? {} : { host }),
    ...(pid === undefined ? {} : { pid }),
    ...(label === undefined ? {} : { label }),
    ...(since ? { since: since.toISOString() } : {}),
    ...(share ? { share: share.mode === 'shared' ? 'shared' : `${share.permits} of ${share.limit} permits` } : {}),
  };
}
