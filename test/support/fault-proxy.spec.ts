import { once } from 'node:events';
import { type AddressInfo } from 'node:net';

import { eventually, FaultProxy, SLACK_MS } from './index.js';
import { EchoClient, EchoServer } from './echo-server.js';

describe('FaultProxy', () => {
  let echo: EchoServer;
  let proxy: FaultProxy;
  let client: EchoClient;

  beforeEach(async () => {
    echo = new EchoServer();
    echo.server.listen(0, '127.0.0.1');
    await once(echo.server, 'listening');
    proxy = await FaultProxy.start({ port: (echo.server.address() as AddressInfo).port });
    client = new EchoClient(proxy.port);
    client.socket.write('hello\n');
    await client.gets('echo hello\n');
    client.received = '';
  });

  afterEach(async () => {
    client.socket.destroy();
    await proxy.close();
    for (const socket of echo.sockets) socket.destroy();
    echo.server.close();
    await once(echo.server, 'close');
  });

  /** Two round trips past the proxy: whatever it leaks would have come through by then. */
  const afterRoundTrips = async () => {
    const witness = new EchoClient((echo.server.address() as AddressInfo).port);
    for (const text of ['one\n', 'two\n']) {
      witness.received = '';
      witness.socket.write(text);
      await witness.gets(`echo ${text}`);
    }
    witness.socket.destroy();
  };
  const linesOfClients = () => echo.lines.filter((line) => !['one', 'two'].includes(line));

  it('forwards both ways, an end too, and forgets closed connections', async () => {
    client.socket.end('bye\n');
    await client.gets('echo bye\n');
    await eventually(() => client.closedWith === 'end' && proxy.connections === 0);
    expect(echo.lines).toEqual(['hello', 'bye']);
  });

  it('forwards a reset of the server', async () => {
    echo.sockets[0]?.resetAndDestroy();
    await eventually(() => client.closedWith === 'ECONNRESET');
  });

  it.each(['up', 'both'] as const)(
    'holds requests while paused (%s), and forwards them in order on resume',
    async (way) => {
      proxy.pause(way);
      client.socket.write('a\n');
      await afterRoundTrips();
      client.socket.end('b\n');
      await afterRoundTrips();
      expect(linesOfClients()).toEqual(['hello']);
      expect(echo.sockets[0]?.readableEnded).toBe(false);
      expect(client.closedWith).toBeUndefined();
      proxy.resume();
      await eventually(() => linesOfClients().length === 3 && client.closedWith === 'end');
      expect(linesOfClients()).toEqual(['hello', 'a', 'b']);
    },
  );

  it('holds replies and the end of the server while paused downwards', async () => {
    proxy.pause('down');
    client.socket.write('a\n');
    await eventually(() => echo.lines.length === 2);
    echo.sockets[0]?.end();
    await afterRoundTrips();
    expect([client.received, client.closedWith]).toEqual(['', undefined]);
    proxy.resume();
    await client.gets('echo a\n');
    await eventually(() => client.closedWith === 'end');
  });

  it('holds a reset too', async () => {
    proxy.pause('down');
    echo.sockets[0]?.resetAndDestroy();
    await afterRoundTrips();
    expect(client.closedWith).toBeUndefined();
    proxy.resume();
    await eventually(() => client.closedWith === 'ECONNRESET');
  });

  it('holds new connections too', async () => {
    proxy.pause();
    const second = new EchoClient(proxy.port);
    second.socket.write('second\n');
    await afterRoundTrips();
    expect([second.received, second.closedWith]).toEqual(['', undefined]);
    proxy.resume();
    await second.gets('echo second\n');
    second.socket.destroy();
  });

  it('drops for good, and resets on resume only the connection that lost something', async () => {
    const idle = new EchoClient(proxy.port);
    await eventually(() => proxy.connections === 2);
    proxy.drop('up');
    client.socket.write('a\n');
    await afterRoundTrips();
    expect([client.received, client.closedWith]).toEqual(['', undefined]);
    proxy.resume();
    await eventually(() => client.closedWith === 'ECONNRESET');
    idle.socket.write('still\n');
    await idle.gets('echo still\n');
    idle.socket.destroy();
    expect(linesOfClients()).toEqual(['hello', 'still']);
  });

  it('delays one way', async () => {
    proxy.delay(200, 'down');
    const sentAt = performance.now();
    client.socket.write('a\n');
    await eventually(() => echo.lines.length === 2);
    expect(client.received).toBe('');
    await client.gets('echo a\n');
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(200);
  });

  it('delays new connections too, until told otherwise', async () => {
    proxy.delay(100);
    const second = new EchoClient(proxy.port);
    const sentAt = performance.now();
    second.socket.write('a\n');
    await second.gets('echo a\n');
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(200);
    // Longer than this test.
    proxy.delay(60_000);
    proxy.delay(0);
    second.socket.write('b\n');
    await second.gets('echo a\necho b\n');
    second.socket.destroy();
  });

  it('refuses new connections, keeps the present ones, and accepts again', async () => {
    proxy.refuse();
    const refused = new EchoClient(proxy.port);
    await eventually(() => refused.closedWith === 'ECONNREFUSED');
    client.socket.write('a\n');
    await client.gets('echo a\n');
    await proxy.accept();
    const accepted = new EchoClient(proxy.port);
    accepted.socket.write('b\n');
    await accepted.gets('echo b\n');
    accepted.socket.destroy();
  });

  it('forgets the connections that there are, for good and unheard, while new ones work', async () => {
    proxy.forget();
    client.socket.write('a\n');
    echo.sockets[0]?.write('pushed\n');
    const next = new EchoClient(proxy.port);
    next.socket.write('b\n');
    await next.gets('echo b\n');
    proxy.resume();
    echo.sockets[0]?.end();
    client.socket.write('c\n');
    await afterRoundTrips();
    expect([client.received, client.closedWith]).toEqual(['', undefined]);
    expect(linesOfClients()).toEqual(['hello', 'b']);
    next.socket.destroy();
    proxy.reset();
    await eventually(() => client.closedWith === 'ECONNRESET' && proxy.connections === 0);
  });

  it('resets every connection', async () => {
    proxy.reset();
    await eventually(() => client.closedWith === 'ECONNRESET' && proxy.connections === 0);
  });

  it('loses one reply after its request was executed', async () => {
    const lost = proxy.dropReplyAfter('take');
    client.socket.write('look\n');
    await client.gets('echo look\n');
    client.socket.write('ta');
    await eventually(() => echo.lines.length === 3);
    client.socket.write('ke\n');
    await lost;
    await eventually(() => client.closedWith === 'ECONNRESET');
    expect(echo.lines.join('|')).toBe('hello|look|ta|ke');
    expect(client.received).toBe('echo look\necho ta');
    const next = new EchoClient(proxy.port);
    next.socket.write('take\n');
    await next.gets('echo take\n');
    next.socket.destroy();
  });

  it('says so when the server died before it answered', async () => {
    const lost = proxy.dropReplyAfter(/t.ke/);
    proxy.pause('down');
    echo.sockets[0]?.removeAllListeners('data').on('data', () => echo.sockets[0]?.destroy());
    client.socket.write('take\n');
    await expect(lost).rejects.toThrow('without an answer');
  });

  it('delays the reply of one request only', async () => {
    const delivered = proxy.delayReplyOf('take', 1_000);
    const sentAt = performance.now();
    client.socket.write('take\n');
    await eventually(() => echo.lines.length === 2);
    expect(client.received).toBe('');
    await delivered;
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(1_000);
    await client.gets('echo take\n');
    const againAt = performance.now();
    client.socket.write('take\n');
    await client.gets('echo take\necho take\n');
    expect(performance.now() - againAt).toTakeLessThan(SLACK_MS);
  });

  it('cuts a reply in the middle', async () => {
    const cut = proxy.cutMidFrame();
    client.socket.write('abcd\n');
    await cut;
    await client.gets('echo ');
    await eventually(() => client.closedWith === 'end');
  });

  it('cuts a request in the middle', async () => {
    const cut = proxy.cutMidFrame('up');
    client.socket.write('abcdef');
    await cut;
    await eventually(() => expect(echo.lines).toEqual(['hello', 'abc']));
  });

  it('shows every request, also one that never arrives', async () => {
    const seen: string[] = [];
    const stop = proxy.onRequest((chunk) => seen.push(chunk.toString()));
    proxy.drop();
    client.socket.write('a\n');
    await eventually(() => expect(seen).toEqual(['a\n']));
    stop();
    client.socket.write('b\n');
    await afterRoundTrips();
    expect(seen).toEqual(['a\n']);
  });
});
