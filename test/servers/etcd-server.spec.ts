import { eventually } from '../support/eventually.js';
import { EtcdOperator } from '../backends/etcd/operator.js';
import { EtcdServer } from './etcd-server.js';

describe.each([1, 3])('etcd with %d member(s)', (members) => {
  it('keeps its data over a restart, unless it is to be empty, and counts what it is asked', async () => {
    const server = await EtcdServer.start({ members });
    try {
      const operator = new EtcdOperator(server.urls);
      await operator.put('a', '1');
      await operator.put('b', '2');
      const { Range: before = 0 } = await server.requests();
      const kept = await operator.list('a');
      expect(kept).toMatchObject([{ key: 'a', value: '1', lease: 0n }]);
      expect((await server.requests())['Range']).toBe(before + 1);
      await server.restart({ empty: false });
      expect(await operator.list('a')).toEqual(kept);
      await server.restart({ empty: true });
      expect(await operator.list('a')).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  it('answers nothing while it is frozen', async () => {
    const server = await EtcdServer.start({ members });
    try {
      server.freeze();
      const asked = fetch(`${server.urls[0]}/health`, { signal: AbortSignal.timeout(300) });
      await expect(asked).rejects.toThrow(/time-?out/iu);
      server.thaw();
      await eventually(async () => expect((await fetch(`${server.urls[0]}/health`)).ok).toBe(true));
    } finally {
      await server.stop();
    }
  });
});

it('has another leader when one is killed', async () => {
  const server = await EtcdServer.start({ members: 3 });
  try {
    const leader = await eventually(() => server.leader());
    await leader.kill();
    const next = await eventually(() => server.leader(), { withinMs: 10_000 });
    expect(next).not.toBe(leader);
  } finally {
    await server.stop();
  }
});
