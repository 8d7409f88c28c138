import { Controller, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  type CustomTransportStrategy,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  Server,
} from '@nestjs/microservices';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { application, closing, root } from './apps.js';
import { KeptLog } from './kept-log.js';

/** Server as applications write it for a transport of their own: it awaits the handler of an event, and no more. */
class AwaitingServer extends Server implements CustomTransportStrategy {
  listen(callback: () => void): void {
    callback();
  }
  close(): void {}
  override on(): never {
    throw new Error('has no events');
  }
  override unwrap(): never {
    throw new Error('has no client');
  }
  async deliver(pattern: string, data: unknown): Promise<unknown> {
    return this.getHandlerByPattern(pattern)?.(data);
  }
}

describe('an event handler without a lock, on a server that only awaits handlers', () => {
  @Controller()
  class Audits {
    readonly notes: unknown[] = [];
    constructor(private readonly locks: LockService) {}

    @EventPattern('bought')
    note(data: unknown): void {
      this.notes.push(data);
    }

    @EventPattern('reported')
    async report(_data: unknown): Promise<void> {
      await this.locks.withLock('report', () => undefined, { waitMs: 0 });
    }

    @MessagePattern('count')
    @Locked('count')
    async count(): Promise<number> {
      return this.notes.length;
    }
  }

  const METADATA = { imports: [DistributedLockModule.forRoot(memory())], controllers: [Audits] };

  async function startMicroservice(server: AwaitingServer, logger: LoggerService | false = false) {
    const options = { strategy: server, logger };
    const app = closing(await NestFactory.createMicroservice<MicroserviceOptions>(root(METADATA), options));
    await app.listen();
    return app;
  }

  it('runs, in a microservice', async () => {
    const server = new AwaitingServer();
    const app = await startMicroservice(server);
    await server.deliver('bought', 'a1');
    expect(app.get(Audits).notes).toEqual(['a1']);
  });

  it('runs, in a hybrid application', async () => {
    const server = new AwaitingServer();
    const app = await application(METADATA);
    app.connectMicroservice<MicroserviceOptions>({ strategy: server });
    await app.startAllMicroservices();
    await server.deliver('bought', 'a1');
    expect(app.get(Audits).notes).toEqual(['a1']);
  });

  it('is reported in the log when a lock that it takes is busy', async () => {
    const log = new KeptLog();
    const server = new AwaitingServer();
    const app = await startMicroservice(server, log);
    const held = await app.get(LockService).acquire('report');
    await server.deliver('reported', 'a1');
    await eventually(() => log.lines.some((line) => /^warn .*"report" is held by/u.test(line)));
    await held.release();
  });
});
