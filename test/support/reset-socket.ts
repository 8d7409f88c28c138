import type { Socket } from 'node:net';

/**
 * Resets a connection. While the end of our side is under way, `resetAndDestroy` of Node 20 to 24 fails with `EINVAL`, never
 * closes the handle, and keeps the process from ending: there the connection is destroyed.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
