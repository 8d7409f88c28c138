import { hostname } from 'node:os';
import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { KeyHolder } from '../core/index.js';
import { KeyTemplateNames } from '../nest/locked/key-template-names.js';
import { lockServicesOf } from '../nest/module/lock-services-of.js';
import { WINDOW_MS } from './contention.js';
import { EventHistory, nameOf } from './event-history.js';
import { InspectedService } from './inspected-service.js';
import type { InspectedEvent, InspectorState } from './inspector-state.js';

/** What the page may do, for all lock services of the application. */
@Injectable()
export class LockInspector implements OnModuleInit, OnModuleDestroy {
  readonly #logger = new Logger('LockInspector');
  readonly #history = new EventHistory();
  readonly #services = new Map<string, InspectedService>();
  readonly #ends = new Set<() => void>();
  /** Readings under way, by what is searched for: many viewers cost the server as much as one. */
  readonly #readings = new Map<string, Promise<InspectorState>>();

  constructor(private readonly discovery: DiscoveryService) {}

  onModuleInit(): void {
    const names = KeyTemplateNames.of(this.discovery);
    for (const [name, locks] of lockServicesOf(this.discovery)) {
      const service = new InspectedService(name, locks, names, this.#history);
      this.#services.set(name, service);
      void service.follow();
    }
  }

  /** Streams of events would keep the server from closing. */
  onModuleDestroy(): void {
    for (const end of this.#ends) end();
  }

  read(search: string): Promise<InspectorState> {
    const reading = this.#readings.get(search) ?? this.#read(search).finally(() => this.#readings.delete(search));
    this.#readings.set(search, reading);
    return reading;
  }

  /** @param end is called when the application shuts down */
  follow(tell: (trouble: InspectedEvent) => void, end: () => void): () => void {
    const stop = this.#history.follow(tell);
    this.#ends.add(end);
    return () => {
      stop();
      this.#ends.delete(end);
    };
  }

  has(backend: string): boolean {
    return this.#services.has(backend);
  }

  /** `undefined`: `owner` does not hold the key any more. @throws LockError */
  async evict(backend: string, key: string, owner: string, by: string): Promise<KeyHolder | undefined> {
    const holder = await this.#services.get(backend)?.locks.evict(key, owner);
    if (!holder) return undefined;
    const who = nameOf(holder);
    this.#logger.warn(`${backend}: ${JSON.stringify(key)} is taken from ${who}, as ${by} asked`);
    const detail = `taken from ${who}, as ${by} asked`;
    this.#history.add({ type: 'evicted', at: new Date().toISOString(), backend, key, detail, times: 1 });
    return holder;
  }

  async #read(search: string): Promise<InspectorState> {
    const backends = await Promise.all(Array.from(this.#services.values(), (service) => service.read(search)));
    const now = new Date();
    return {
      at: now.toISOString(),
      host: hostname(),
      pid: process.pid,
      windowMs: WINDOW_MS,
      backends,
      ...this.#history.read(now.getTime()),
    };
  }
}
