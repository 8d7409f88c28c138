import { Injectable } from '@nestjs/common';
import { MetadataScanner } from '@nestjs/core';
import { currentLock, Locked, Unlocked } from 'nestjs-distributed-lock';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';

@Injectable()
class Report {
  @Locked('report')
  async run(): Promise<string | undefined> {
    return currentLock()?.key;
  }
}

@Injectable()
class Silent extends Report {
  override async run(): Promise<string | undefined> {
    return currentLock()?.key;
  }
}

@Injectable()
class Relocked extends Report {
  @Locked('other')
  override async run(): Promise<string | undefined> {
    return currentLock()?.key;
  }
}

@Injectable()
class Outspoken extends Report {
  @Unlocked()
  override async run(): Promise<string | undefined> {
    return `${currentLock()?.key} then ${await super.run()}`;
  }
}

@Injectable()
class Heir extends Report {}

/** Wraps every method, inherited ones too, on the class's own prototype, and copies the metadata, as tracing libraries do. */
function Traced(): ClassDecorator {
  return ({ prototype }) => {
    for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
      const method: (...args: unknown[]) => unknown = prototype[name];
      const wrapper = function (this: unknown, ...args: unknown[]): unknown {
        return method.apply(this, args);
      };
      for (const key of Reflect.getMetadataKeys(method))
        Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
      Object.defineProperty(prototype, name, { value: wrapper, configurable: true, writable: true });
    }
  };
}

@Traced()
@Injectable()
class TracedHeir extends Report {}

const REFUSAL = 'Silent.run overrides Report.run, which has @Locked, and would run without a lock';

describe('a method that overrides a locked one', () => {
  it('is refused at the start when it says nothing of a lock, made by Nest or by a factory', async () => {
    await expect(providing(new Crossing(), Silent)).rejects.toThrow(REFUSAL);
    const made = { provide: 'MADE', useFactory: () => new Silent() };
    await expect(providing(new Crossing(), made)).rejects.toThrow(REFUSAL);
  });

  it('has the lock that it says, or none on purpose', async () => {
    const app = await providing(new Crossing(), Relocked, Outspoken, Heir, TracedHeir);
    await expect(app.get(Relocked).run()).resolves.toBe('other');
    await expect(app.get(Outspoken).run()).resolves.toBe('undefined then report');
    await expect(app.get(Heir).run()).resolves.toBe('report');
    await expect(app.get(TracedHeir).run()).resolves.toBe('report');
  });
});
