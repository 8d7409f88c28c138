import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { type LockObserver, LockService } from 'nestjs-distributed-lock';
import type { LockEvents } from 'nestjs-distributed-lock';
import { type Observable, Subject } from 'rxjs';
import type { Order } from '../database/order.entity.js';

/** Something that happened in this process, as the page shows it. */
export interface LiveEvent {
  readonly kind: keyof LockEvents | 'paying' | 'sold' | 'restocked' | 'oversold';
  /** Milliseconds since 1970, by the clock of this process. */
  readonly at: number;
  readonly key?: string;
  readonly token?: string;
  readonly detail?: string;
  /** How many wait for the key in this process, from now on. */
  readonly waiters?: number;
}

const REMEMBERED = 60;

/** The events of this process's locks and sale. As a `LockObserver` it hears from the locks themselves. */
@Injectable()
export class LiveEvents implements LockObserver, BeforeApplicationShutdown {
  readonly #stream = new Subject<LiveEvent>();
  readonly #recent: LiveEvent[] = [];

  /** The lock service comes into being after its observers, so it is looked up when it is needed. */
  constructor(private readonly moduleRef: ModuleRef) {}

  get stream(): Observable<LiveEvent> {
    return this.#stream;
  }

  get recent(): readonly LiveEvent[] {
    return this.#recent;
  }

  paying(saleId: number, buyer: string): void {
    this.#happened({ kind: 'paying', detail: `${buyer} pays for sale ${saleId}` });
  }

  sold({ id, saleId, buyer, fencingToken }: Order): void {
    const detail = `order ${id} of sale ${saleId} to ${buyer}`;
    this.#happened({ kind: 'sold', detail, ...(fencingToken === null ? {} : { token: fencingToken }) });
  }

  restocked(saleId: number, stock: number): void {
    this.#happened({ kind: 'restocked', detail: `sale ${saleId} has ${stock} pieces again` });
  }

  oversold(saleId: number, twice: number): void {
    this.#happened({ kind: 'oversold', detail: `sale ${saleId} has sold ${twice} pieces twice` });
  }

  termBegan({ key, fencingToken }: LockEvents['termBegan']): void {
    this.#happened({ kind: 'termBegan', key, token: String(fencingToken), detail: 'leads' });
  }

  termEnded({ key, fencingToken, reason }: LockEvents['termEnded']): void {
    this.#happened({ kind: 'termEnded', key, token: String(fencingToken), detail: reason });
  }

  waiting({ key, waitersHere }: LockEvents['waiting']): void {
    this.#happened({ kind: 'waiting', key, waiters: waitersHere, detail: `${waitersHere} waiting here` });
  }

  acquired({ key, fencingToken, waitedMs, from }: LockEvents['acquired']): void {
    const holds = this.moduleRef.get(LockService, { strict: false }).inspect();
    const waiters = holds.find((hold) => hold.key === key)?.waitersHere ?? 0;
    this.#happened({
      kind: 'acquired',
      key,
      token: String(fencingToken),
      waiters,
      detail: `${from}, waited ${waitedMs.toFixed()} ms`,
    });
  }

  released({ key, fencingToken, heldMs }: LockEvents['released']): void {
    this.#happened({ kind: 'released', key, token: String(fencingToken), detail: `held ${heldMs.toFixed()} ms` });
  }

  timedOut({ key, waitMs }: LockEvents['timedOut']): void {
    this.#happened({ kind: 'timedOut', key, detail: `gave up after ${waitMs} ms` });
  }

  jeopardy({ key, fencingToken }: LockEvents['jeopardy']): void {
    this.#happened({ kind: 'jeopardy', key, token: String(fencingToken), detail: 'a renewal failed' });
  }

  lost({ key, fencingToken, reason }: LockEvents['lost']): void {
    this.#happened({ kind: 'lost', key, token: String(fencingToken), detail: reason });
  }

  backendFailed({ key, operation }: LockEvents['backendFailed']): void {
    this.#happened({ kind: 'backendFailed', key, detail: `could not ${operation}` });
  }

  /** Ends the streams, so that open pages do not keep the server from closing. */
  beforeApplicationShutdown(): void {
    this.#stream.complete();
  }

  #happened(event: Omit<LiveEvent, 'at'>): void {
    const complete = { ...event, at: Date.now() };
    this.#recent.push(complete);
    if (this.#recent.length > REMEMBERED) this.#recent.shift();
    this.#stream.next(complete);
  }
}
