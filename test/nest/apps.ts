import type {
  DynamicModule,
  INestApplication,
  INestApplicationContext,
  ModuleMetadata,
  NestApplicationOptions,
  Provider,
  Type,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { DistributedLockModule, type LockObserver } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';

const open = new Set<INestApplicationContext>();

afterEach(async () => {
  await Promise.all(Array.from(open, (app) => app.close()));
  open.clear();
});

/** Closes `app` after the test. */
export function closing<App extends INestApplicationContext>(app: App): App {
  open.add(app);
  return app;
}

export function inMemory(observer: LockObserver): DynamicModule {
  return DistributedLockModule.forRoot({ backend: memory(), observers: [observer], defaults: { waitMs: 5_000 } });
}

/** A root module of its own for each application. */
export function root(metadata: ModuleMetadata): DynamicModule {
  class RootModule {
    readonly own = true;
  }
  return { module: RootModule, ...metadata };
}

const QUIET = { logger: false, abortOnError: false } as const;

export async function context(metadata: ModuleMetadata): Promise<INestApplicationContext> {
  return closing(await NestFactory.createApplicationContext(root(metadata), QUIET));
}

/** An application with these providers and locks in memory. */
export function providing(observer: LockObserver, ...providers: Provider[]): Promise<INestApplicationContext> {
  return context({ imports: [inMemory(observer)], providers });
}

export async function application(
  metadata: ModuleMetadata,
  options?: NestApplicationOptions,
): Promise<INestApplication> {
  return closing(await NestFactory.create(root(metadata), { ...QUIET, ...options }));
}

/** Listens on a port of its own; resolves to the address. Closing does not wait for connections that clients keep. */
export async function listening(
  metadata: ModuleMetadata,
  adapter: AbstractHttpAdapter = new ExpressAdapter(),
): Promise<string> {
  const options = { ...QUIET, forceCloseConnections: true };
  return listen(closing(await NestFactory.create(root(metadata), adapter, options)));
}

export async function listen(app: INestApplication): Promise<string> {
  await app.listen(0, '127.0.0.1');
  return app.getUrl();
}

export function serving(observer: LockObserver, ...controllers: Type[]): Promise<string> {
  return listening({ imports: [inMemory(observer)], controllers });
}
