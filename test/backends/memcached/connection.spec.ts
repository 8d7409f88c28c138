import type { Command } from '../../../lib/backends/memcached/transport/pipeline.js';
import {
  MemcachedConnection,
  type MemcachedConnectionOptions,
} from '../../../lib/backends/memcached/transport/connection.js';
import { MemcachedError, unexpectedReplyError } from '../../../lib/backends/memcached/error.js';
import { META_NOOP_COMMAND } from '../../../lib/backends/memcached/server-statistics.js';
import { blockEventLoop, eventually, failureOf, freePort, SLACK_MS, timeLimitOf } from '../../support/index.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { MemcachedWorld } from './memcached-world.js';
import { ScriptedServer } from './scripted-server.js';

const TIMEOUT_MS = timeLimitOf(200);

/** Answered by its own name, as far as this test goes. */
function say(name: string): Command<string> {
  return {
    text: `${name}\r\n`,
    read: ({ line }) => {
      if (line !== name) throw unexpectedReplyError(line);
      return line;
    },
  };
}

function open(port: number, options: Partial<MemcachedConnectionOptions> = {}): Promise<MemcachedConnection> {
  return MemcachedConnection.open({
    host: '127.0.0.1',
    port,
    tls: undefined,
    connectTimeoutMs: TIMEOUT_MS,
    requestTimeoutMs: TIMEOUT_MS,
    ...options,
  });
}

describeWanted(['memcached'], 'a connection', () => {
  it('sends what belongs to one turn in one write, and gives each its own answer', async () => {
    await using server = await ScriptedServer.start((socket, text) => socket.write(text));
    const link = await open(server.port);
    const answers = await Promise.all([
      link.exchange(say('a'), say('b')),
      link.exchange(say('c')),
      Promise.resolve().then(() => link.exchange(say('d'))),
    ]);
    expect(answers).toEqual([['a', 'b'], ['c'], ['d']]);
    expect(server.received).toEqual(['a\r\nb\r\nc\r\nd\r\n']);
    link.end(new MemcachedError('not-sent', 'over'));
  });

  it('takes a thousand answers byte by byte', async () => {
    await using server = await ScriptedServer.start((socket, text) => {
      for (const byte of text) socket.write(byte);
    });
    const link = await open(server.port, { requestTimeoutMs: 5_000 });
    const names = Array.from({ length: 1_000 }, (__, i) => `n${i}`);
    await expect(Promise.all(names.map((name) => link.exchange(say(name))))).resolves.toEqual(names.map((n) => [n]));
    link.end(new MemcachedError('not-sent', 'over'));
  });

  it.each<[string, (write: (text: string) => void) => void]>([
    ['says nothing', () => undefined],
    ['says half a line for ever', (write) => drip(write, 'a')],
    ['says half a block for ever', (write) => (write('VA 1000 c1\r\n'), drip(write, 'x'))],
    ['answers the first question only', (write) => write('a\r\n')],
  ])('to a server that %s ends in time, and what was asked has an unknown outcome', async (_what, talk) => {
    await using server = await ScriptedServer.start((socket) => talk((text) => socket.write(text)));
    const link = await open(server.port);
    const lost: unknown[] = [];
    link.onLost = (error) => lost.push(error);
    const since = performance.now();
    const [first, second] = [link.exchange(say('a')).catch(String), failureOf(link.exchange(say('b')))];
    await expect(second).resolves.toMatchObject({ kind: 'unknown', message: `no answer within ${TIMEOUT_MS} ms` });
    expect(performance.now() - since).toBeGreaterThanOrEqual(TIMEOUT_MS - 1);
    expect(performance.now() - since).toTakeLessThan(TIMEOUT_MS + SLACK_MS);
    await first;
    await eventually(() => server.closed === 1);
    expect(lost).toHaveLength(1);
    expect(link.isAlive).toBe(false);
  });

  it('ends with an answer that makes no sense: all that was asked with it fails, and its other answers are nobody’s', async () => {
    await using server = await ScriptedServer.start((socket) => socket.write('b\r\na\r\n'));
    const link = await open(server.port);
    const failures = await Promise.all([failureOf(link.exchange(say('a'))), failureOf(link.exchange(say('b')))]);
    for (const failure of failures) {
      expect(failure).toMatchObject({ kind: 'protocol', message: 'no answer of a memcached server: "b"' });
    }
    await eventually(() => server.closed === 1);
  });

  it('ends with an answer that nobody asked for', async () => {
    await using server = await ScriptedServer.start((socket) => socket.write('a\r\na\r\n'));
    const link = await open(server.port);
    await expect(link.exchange(say('a'))).resolves.toEqual(['a']);
    await eventually(() => !link.isAlive);
  });

  it('that the server closes or resets leaves an unknown outcome, and what comes after it is not sent', async () => {
    for (const how of ['end', 'resetAndDestroy'] as const) {
      await using server = await ScriptedServer.start((socket) => void socket[how]());
      const link = await open(server.port);
      await expect(failureOf(link.exchange(say('a')))).resolves.toMatchObject({ kind: 'unknown' });
      await expect(failureOf(link.exchange(say('b')))).resolves.toMatchObject({ kind: 'not-sent' });
      expect(server.received).toEqual(['a\r\n']);
    }
  });

  it('that ended while a command waited for its turn does not send it', async () => {
    await using server = await ScriptedServer.start(() => undefined);
    const link = await open(server.port);
    const asked = failureOf(link.exchange(say('a')));
    link.end(new MemcachedError('not-sent', 'over'));
    await expect(asked).resolves.toMatchObject({ kind: 'not-sent' });
    await eventually(() => server.closed === 1);
    expect(server.received).toEqual([]);
  });

  it('reads the answers that have arrived before it calls the server silent', async () => {
    await using world = await MemcachedWorld.start();
    const link = await open(world.server.port);
    await link.exchange(META_NOOP_COMMAND);
    const answer = link.exchange(META_NOOP_COMMAND);
    // Sent at the end of this turn, and answered by another process while this one does nothing.
    await Promise.resolve();
    blockEventLoop(TIMEOUT_MS * 2);
    await expect(answer).resolves.toEqual([true]);
    expect(link.isAlive).toBe(true);
    link.end(new MemcachedError('not-sent', 'over'));
  });

  it('that does not come about is an error in time, and nothing was sent', async () => {
    const refused = await failureOf(open(await freePort()));
    expect(refused).toMatchObject({ kind: 'not-sent', message: expect.stringContaining('ECONNREFUSED') });
    await using silent = await ScriptedServer.start(() => undefined);
    const since = performance.now();
    const handshake = await failureOf(open(silent.port, { tls: {} }));
    expect(handshake).toMatchObject({ kind: 'not-sent', message: `no connection within ${TIMEOUT_MS} ms` });
    expect(performance.now() - since).toTakeLessThan(TIMEOUT_MS + SLACK_MS);
    await eventually(() => silent.closed === silent.accepted);
  });
});

/** Something that looks like the beginning of an answer, again and again. */
function drip(write: (text: string) => void, text: string): void {
  const timer = setInterval(() => write(text), 10);
  setTimeout(() => clearInterval(timer), TIMEOUT_MS * 3);
}
