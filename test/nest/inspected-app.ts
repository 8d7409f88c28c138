import { Injectable, type Provider } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { DistributedLockModule, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import {
  type InspectedKey,
  LockInspectorModule,
  type LockInspectorOptions,
  type InspectorState,
} from 'nestjs-distributed-lock/inspector';
import { memory } from 'nestjs-distributed-lock/memory';
import { closing, listen, root } from './apps.js';
import { text } from './http-text.js';
import { atLeastMs } from '../support/machine.js';

export const AUTHORIZED = { headers: { authorization: 'Bearer on-call' } };

@Injectable()
class Sales {
  @Locked('sale_:id')
  async buy(@LockKey('id') _id: number, work: () => Promise<void>): Promise<void> {
    await work();
  }
}

/** Opens an application with an inspector of two backends in memory. */
export async function open(
  adapter: AbstractHttpAdapter,
  options: Partial<LockInspectorOptions> = {},
  providers: Provider[] = [],
) {
  const lockModule = DistributedLockModule.forRoot({
    backends: { default: memory(), ledger: memory() },
    namespace: 'shop',
    defaults: { ttlMs: atLeastMs(1_000), waitMs: 20_000 },
    logger: false,
  });
  const metadata = {
    imports: [lockModule, LockInspectorModule.forRoot({ guard: 'none', ...options })],
    providers: [Sales, ...providers],
  };
  const app = closing(await NestFactory.create(root(metadata), adapter, { logger: false, abortOnError: false }));
  const url = `${await listen(app)}/locks`;
  const read = async (search = ''): Promise<InspectorState> => {
    const response = await fetch(`${url}/state?search=${encodeURIComponent(search)}`, AUTHORIZED);
    return (await response.json()) as InspectorState;
  };
  return { app, url, locks: app.get(LockService), sales: app.get(Sales), read };
}

export function keysOf(state: InspectorState, name = 'default'): readonly InspectedKey[] {
  return state.backends.find((backend) => backend.name === name)?.keys ?? [];
}

export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<string> {
  const { origin } = new URL(url);
  return text(`${url}/evict`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', origin, ...AUTHORIZED.headers, ...headers },
  });
}
