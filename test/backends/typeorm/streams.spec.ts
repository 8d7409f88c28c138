import { connect, Socket } from 'node:net';
import { DataSource } from 'typeorm';
import { failureOf } from '../../conformance/contract.js';
import { describeServers } from './sql-world.js';

/** An application that reaches its database through a tunnel, or the connector of a cloud. */
describeServers('a data source that makes its own streams', (world, type) => {
  const streams: Socket[] = [];

  /** `pg` connects what it is given by itself, to where it believes the server is. */
  const tunnel = (): Socket => {
    const { port } = world.harness.server();
    const stream = type === 'postgres' ? new Socket() : connect(port, '127.0.0.1');
    if (type === 'postgres') {
      const reach = stream.connect.bind(stream);
      Object.defineProperty(stream, 'connect', { value: () => reach(port, '127.0.0.1') });
    }
    streams.push(stream);
    return stream;
  };
  const options = (stream: unknown) => ({ type, url: world.urlOf({ port: 1 }), extra: { stream } });

  it.each(['lease', 'row', 'session'] as const)('has locks that take the same way: %s', async (strategy) => {
    const application = await new DataSource(options(tunnel)).initialize();
    await application.query('select 1');
    const before = streams.length;
    const [service, other] = [world.service({ strategy, dataSource: application }), world.service({ strategy })];
    const lock = await service.acquire('tunnel');
    expect(streams.length).toBeGreaterThan(before);
    await expect(other.tryAcquire('tunnel')).resolves.toBeNull();
    await lock.release();
    await application.destroy();
  });

  it('ends what it made for the locks with them, also when the server is silent', async () => {
    const service = world.service({ dataSource: { options: options(tunnel) } });
    const before = streams.length;
    await (await service.acquire('tunnel')).release();
    await service.close();
    expect(streams.slice(before).map(({ destroyed }) => destroyed)).not.toContain(false);
  });

  it('is refused when that is no stream', async () => {
    const service = world.service({ dataSource: { options: options(() => 'a stream') } });
    await expect(failureOf(service.acquire('tunnel'))).resolves.toThrow(/extra\.stream .*returned string/u);
  });
});
