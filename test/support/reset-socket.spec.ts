import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

import { resetSocket } from './reset-socket.js';

describe('a connection that is reset', () => {
  it('closes, also in the turn in which our side has ended', async () => {
    const server = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    socket.end();
    // The end has been asked for by then, and the event loop has not gone on.
    await new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
    resetSocket(socket);
    await closed;
    server.close();
    await once(server, 'close');
  });
});
