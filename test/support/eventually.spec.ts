import { eventually } from './eventually.js';

describe('eventually', () => {
  it('resolves to the value as soon as the condition holds', async () => {
    let asked = 0;
    const value = await eventually(() => {
      asked += 1;
      return asked === 3 ? 'here' : false;
    });
    expect(value).toBe('here');
    expect(asked).toBe(3);
  });

  it('takes an undefined result for a condition that holds', async () => {
    await expect(eventually(() => expect(1).toBe(1))).resolves.toBeUndefined();
  });

  it('asks at least once, however short the deadline', async () => {
    await expect(eventually(() => 42, { withinMs: 0 })).resolves.toBe(42);
  });

  it('rejects at the deadline with the last error', async () => {
    let asked = 0;
    const never = eventually(
      () => {
        asked += 1;
        throw new Error(`attempt ${asked}`);
      },
      { withinMs: 20 },
    );
    await expect(never).rejects.toThrow(/^Not within \d+ ms: attempt [1-9]/);
    expect(asked).toBeGreaterThan(1);
  });

  it('rejects when the condition stays false', async () => {
    await expect(eventually(() => Promise.resolve(false), { withinMs: 5 })).rejects.toThrow('the condition is false');
  });
});
