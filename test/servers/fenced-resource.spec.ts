import { FencedResource } from '../support/fenced-resource.js';
import { checkResourceOrder } from '../support/history-checker.js';
import { RedisServer } from './redis-server.js';

describe('FencedResource', () => {
  let resource: FencedResource;
  let key: string;

  afterAll(() => resource[Symbol.dispose]());
  const server = RedisServer.shared();
  beforeAll(() => {
    resource = new FencedResource(server.url);
  });

  beforeEach(() => {
    key = `key ${Math.random()}`;
  });

  const write = (token: bigint, to = resource) => to.write({ key, token, owner: `o${token}`, proc: 'p' });

  it('accepts the newest token and none below it', async () => {
    const accepted = [];
    for (const token of [5n, 5n, 9n, 10n, 9n, 10n]) accepted.push(await write(token));
    expect(accepted).toEqual([true, true, true, true, false, true]);
  });

  it('tells tokens apart that a double cannot', async () => {
    await write(2n ** 62n + 1n);
    await expect(write(2n ** 62n)).resolves.toBe(false);
    await expect(write(2n ** 62n + 2n)).resolves.toBe(true);
  });

  it('keeps keys apart', async () => {
    await write(7n);
    await expect(resource.write({ key: `${key}'`, token: 1n, owner: 'o', proc: 'p' })).resolves.toBe(true);
  });

  it('remembers the order of all clients, as the checker wants it', async () => {
    using other = new FencedResource(server.url);
    await write(2n);
    await write(1n, other);
    const writes = await resource.writes(key);
    expect(writes).toEqual([
      { key, token: 2n, owner: 'o2', proc: 'p', accepted: true },
      { key, token: 1n, owner: 'o1', proc: 'p', accepted: false },
    ]);
    expect(checkResourceOrder(writes)).toBeNull();
  });
});
