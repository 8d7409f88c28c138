import { PassThrough, Stream, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { Locked, LockService } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';

@Injectable()
class Gateway {
  @Locked('result')
  async give<Result>(create: () => Promise<Result> | Result): Promise<Result> {
    return create();
  }
}

async function start() {
  const app = await providing(new Crossing(), Gateway);
  const locks = app.get(LockService);
  return { gateway: app.get(Gateway), isHeld: () => locks.inspect().length > 0 };
}

describe('a stream that a locked method returns', () => {
  it('is a plain value without a state, as the response of superagent', async () => {
    const { gateway, isHeld } = await start();
    const answer = Object.assign(new Stream(), { text: 'all of it' });
    expect(await gateway.give(() => answer)).toBe(answer);
    expect(isHeld()).toBe(false);
  });

  it('is a plain value when it has ended or is destroyed', async () => {
    const { gateway, isHeld } = await start();
    const ended = new PassThrough();
    ended.end();
    await finished(ended.resume());
    for (const stream of [ended, new PassThrough().destroy()]) {
      await gateway.give(() => stream);
      await eventually(() => !isHeld());
    }
  });

  it('keeps the lock until it ends, in the form of old libraries, too', async () => {
    const { gateway, isHeld } = await start();
    const old = Object.assign(new Stream(), { readable: true });
    await gateway.give(() => old);
    expect(isHeld()).toBe(true);
    old.emit('end');
    await eventually(() => !isHeld());
  });

  it('keeps the lock until what was written to it is flushed', async () => {
    const { gateway, isHeld } = await start();
    let flush = (): void => undefined;
    const sink = new Writable({ write: (_chunk, _encoding, done) => void (flush = done) });
    await gateway.give(() => sink.end('row'));
    expect(isHeld()).toBe(true);
    flush();
    await eventually(() => !isHeld());
  });
});
