import { failureOf, wantedOf } from '../../support/index.js';
import { EtcdWorld } from './etcd-world.js';
import { Http2Proxy, type OwnAnswer } from './http2-proxy.js';
import { CHEAP, CREDENTIALS, enableUsers } from './users.js';

const INVALID_TOKEN: OwnAnswer = {
  headers: { ':status': 200, 'content-type': 'application/grpc' },
  trailers: { 'grpc-status': '16', 'grpc-message': 'etcdserver: invalid auth token' },
};

/** As members do whose users differ from those of the others: https://github.com/etcd-io/etcd/issues/13172 */
wantedOf(['etcd']).forEach(() =>
  it('a member that refuses every token is left for one that does not, and one alone is asked no more than twice', async () => {
    await using world = await EtcdWorld.start({ args: CHEAP });
    await enableUsers(world);
    await using member = await Http2Proxy.start(world.server.urls[0] ?? '');
    member.answer = (path) => (path.endsWith('Authenticate') ? undefined : INVALID_TOKEN);
    const options = { credentials: CREDENTIALS, sessionTtlMs: 10_000, patienceMs: 0 };
    // Which one is asked first is left to chance.
    while (member.counts['LeaseGrant'] === undefined) {
      const service = world.service({ ...options, endpoints: [member.url, ...world.server.urls] });
      await (await service.acquire('k', { waitMs: 0 })).release();
      await (await service.acquire('k', { waitMs: 0 })).release();
      await service.close();
    }
    // By the token it had, and by a new one.
    expect(member.counts).toMatchObject({ Authenticate: 2, LeaseGrant: 2 });
    expect(member.counts['Txn'] ?? 0).toBe(0);
    const alone = world.service({ ...options, endpoints: member.url });
    expect(String(await failureOf(alone.acquire('k', { waitMs: 0 })))).toContain('invalid auth token');
  }),
);
