import { hostname } from 'node:os';
import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { KeyHolder } from '../core/index.js';
import { KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { findLockServices } from '../nest/module/lock-services-of.js';
import { WINDOW_MS } from './contention.js';
import { describeProcess, EventHistory } from './event-history.js';
import { InspectedService } from './inspected-service.js';
import type { InspectedEvent, InspectorState } from './inspector-state.js';
import { escapeInvisible } from './visible-text.js';

@Injectable()
export class LockInspector implements OnModuleInit, OnModuleDestroy {
  readonly #logger = new Logger('LockInspector');
  readonly #history = new EventHistory();
  readonly #services = new Map<string, InspectedService>();
  readonly #endStreamCallbacks = new Set<() => void>();
  /** Reads of the state that have not ended, by search. Viewers with the same search share one read. */
  readonly #pendingReads = new Map<string, Promise<InspectorState>>();

  #isShuttingDown = false;

  constructor(private readonly discovery: DiscoveryService) {}

  onModuleInit(): void {
    const templateNames = KeyTemplateNames.of(this.discovery);
    for (const [name, locks] of findLockServices(this.discovery)) {
      const service = new InspectedService(name, locks, templateNames, this.#history);
      this.#services.set(name, service);
      void service.recordEvents();
    }
  }

  /** Whether the application is shutting down: a new stream of events would keep the HTTP server from closing. */
  get isShuttingDown(): boolean {
    return this.#isShuttingDown;
  }

  /** Ends the streams of events, which would keep the HTTP server from closing. */
  onModuleDestroy(): void {
    this.#isShuttingDown = true;
    for (const endStream of this.#endStreamCallbacks) endStream();
  }

  readState(search: string): Promise<InspectorState> {
    const pendingRead =
      this.#pendingReads.get(search) ?? this.#readServices(search).finally(() => this.#pendingReads.delete(search));
    this.#pendingReads.set(search, pendingRead);
    return pendingRead;
  }

  /** Calls `listener` for each trouble, and `endStream` at shutdown. Returns a function that removes both callbacks. */
  followTroubles(listener: (trouble: InspectedEvent) => void, endStream: () => void): () => void {
    const stopListening = this.#history.followTroubles(listener);
    this.#endStreamCallbacks.add(endStream);
    return () => {
      stopListening();
      this.#endStreamCallbacks.delete(endStream);
    };
  }

  hasBackend(backend: string): boolean {
    return this.#services.has(backend);
  }

  /**
   * Returns `undefined` when `owner` no longer holds the key.
   * @throws LockError
   */
  async evictOwner(backend: string, key: string, owner: string, requester: string): Promise<KeyHolder | undefined> {
    const holder = await this.#services.get(backend)?.locks.evict(key, owner);
    if (!holder) return undefined;
    const detail = `taken from ${describeProcess(holder)}, as ${requester} asked`;
    this.#logger.warn(escapeInvisible(`${backend}: ${JSON.stringify(key)} is ${detail}`));
    this.#history.addEvent({ type: 'evicted', at: new Date().toISOString(), backend, key, detail, times: 1 });
    return holder;
  }

  async #readServices(search: string): Promise<InspectorState> {
    const backends = await Promise.all(Array.from(this.#services.values(), (service) => service.readBackend(search)));
    const now = new Date();
    return {
      at: now.toISOString(),
      host: hostname(),
      pid: process.pid,
      windowMs: WINDOW_MS,
      backends,
      ...this.#history.readEvents(now.getTime()),
    };
  }
}
