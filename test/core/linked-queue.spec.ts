import fc from 'fast-check';
import { type Linked, LinkedQueue } from '../../lib/core/time/linked-queue.js';

class Item implements Linked<Item> {
  previous: Item | undefined;
  next: Item | undefined;
  queue: object | undefined;
}

describe('LinkedQueue', () => {
  it('keeps the order of those who are in it, whoever leaves it, and however often', () => {
    const step = fc.record({ enters: fc.boolean(), which: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const items = Array.from({ length: 10 }, () => new Item());
        const [queue, other] = [new LinkedQueue<Item>(), new LinkedQueue<Item>()];
        let expected: Item[] = [];
        for (const { enters, which } of steps) {
          const item = items[which] ?? new Item();
          if (enters && !expected.includes(item)) {
            queue.push(item);
            expected.push(item);
          } else {
            other.delete(item);
            if (enters) continue;
            queue.delete(item);
            expected = expected.filter((each) => each !== item);
          }
          expect(queue.first).toBe(expected[0]);
        }
        for (const item of expected) {
          expect(queue.first).toBe(item);
          queue.delete(item);
        }
        expect(queue.first).toBeUndefined();
      }),
    );
  });
});
