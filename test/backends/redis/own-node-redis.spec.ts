import type { Socket } from 'node:net';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis-5';
import { createNodeRedisClientMaker } from '../../../lib/backends/redis/clients/node-redis.js';
import type { LoginSource } from '../../../lib/backends/redis/access-options.js';
import { eventually } from '../../support/eventually.js';
import { Listener } from '../../support/stand-in.js';
import { RedisWorld } from './redis-world.js';

describe.each([
  ['6', createNodeRedisClientMaker(createClient())],
  ['5', createNodeRedisClientMaker(createClient5())],
])("a connection of the backend's own by node-redis %s", (_version, maker) => {
  const world = RedisWorld.shared();

  function clientAt(port: number, login: LoginSource = {}, location: { db?: number; tls?: object } = {}) {
    const client = world.disconnecting(maker.makeClient({ host: '127.0.0.1', port, ...location }, login));
    client.on('error', () => undefined);
    void client.connect();
    return client;
  }

  async function listen(onClient: (client: Socket) => void): Promise<Listener> {
    return world.closing(await Listener.start(onClient));
  }

  it('has its database and its name, and answers', async () => {
    const client = clientAt(world.server.port, {}, { db: 3 });
    await eventually(() => expect(client.status).toBe('ready'));
    await client.call('SET', 'key', 1);
    await world.operator.select(3);
    await expect(world.operator.get('key')).resolves.toBe('1');
    await world.operator.select(0);
    await expect(client.call('CLIENT', 'GETNAME')).resolves.toBe(client.options?.connectionName);
  });

  it('has another one after it was slammed in its handshake', async () => {
    let slams = 2;
    const { port } = await listen((socket) => {
      if (slams-- > 0) socket.destroy();
      else socket.on('data', () => socket.write('+OK\r\n'));
    });
    const client = clientAt(port);
    await eventually(() => expect(client.status).toBe('ready'));
  });

  it.each([
    ['connecting by TLS', { tls: {} }],
    ['waiting for the answer to its first command', {}],
  ])('leaves no socket behind when it is given up while it is %s', async (_state, location) => {
    const listener = await listen((socket) => socket.resume());
    const client = clientAt(listener.port, {}, location);
    await eventually(() => expect(listener.connections).toBe(1));
    client.disconnect();
    // node-redis itself gives up connecting after 5 seconds.
    await eventually(() => expect(listener.connections).toBe(0), { withinMs: 3_000 });
    expect(client.status).toBe('end');
  });

  it('fails what is under way when it is lost, and never sends it again', async () => {
    const proxy = await world.proxy();
    const client = clientAt(proxy.port);
    await eventually(() => expect(client.status).toBe('ready'));
    const lost = proxy.dropReplyAfter('RPUSH');
    const pushing = client.call('RPUSH', 'list', 'x');
    await Promise.all([lost, expect(pushing).rejects.toThrow()]);
    await expect(client.call('RPUSH', 'list', 'y')).rejects.toThrow('the connection is lost');
    await eventually(() => expect(client.status).toBe('ready'));
    await client.call('PING');
    await expect(world.operator.lrange('list', 0, -1)).resolves.toEqual(['x']);
  });

  it('is replaced when its server has become a replica', async () => {
    const client = clientAt(world.server.port);
    await eventually(() => expect(client.status).toBe('ready'));
    const before = await client.call('CLIENT', 'ID');
    await world.operator.replicaof('127.0.0.1', '1');
    try {
      const closed = new Promise((resolve) => client.on('close', resolve));
      await expect(client.call('SET', 'key', 'x')).rejects.toThrow('READONLY');
      await closed;
      await eventually(() => expect(client.status).toBe('ready'));
      await expect(client.call('CLIENT', 'ID')).resolves.not.toBe(before);
    } finally {
      await world.operator.replicaof('NO', 'ONE');
    }
  });

  it('asks for its login again until it is given, and tells why', async () => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all');
    const [answers, errors]: [(() => string)[], unknown[]] = [[], []];
    const vaultError = new Error('the vault is closed');
    answers.push(() => {
      throw vaultError;
    });
    const login = async () => ({ username: 'app', password: answers.shift()?.() ?? 'right' });
    const client = clientAt(world.server.port, login);
    client.on('error', (error) => errors.push(error));
    await eventually(() => expect(client.status).toBe('ready'));
    expect(errors).toEqual([vaultError]);
    await expect(client.call('ACL', 'WHOAMI')).resolves.toBe('app');
  });

  it('subscribes once, and asks for a sign of life after that', async () => {
    const client = clientAt(world.server.port);
    const messages: unknown[] = [];
    client.on('message', (...message) => messages.push(message));
    await eventually(() => expect(client.status).toBe('ready'));
    await client.call('subscribe', 'channel');
    const seen = await world.commandsDuring(async () => void (await client.call('subscribe', 'channel')));
    expect(seen).toEqual(['ping']);
    await world.operator.publish('channel', 'hello');
    await eventually(() => expect(messages).toEqual([['channel', 'hello']]));
    await client.call('unsubscribe', 'channel');
    await expect(world.operator.publish('channel', 'again')).resolves.toBe(0);
  });
});
