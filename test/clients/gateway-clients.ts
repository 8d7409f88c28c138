import { once } from 'node:events';
import type { INestApplicationContext, WebSocketAdapter } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';

/** A real client of a gateway. */
export interface GatewayClient {
  /** Resolves to the next event that the server sends, and its data. */
  ask(event: string, data: unknown): Promise<readonly [event: string, data: unknown]>;
  close(): void;
}

export interface Platform {
  readonly adapter: new (app: INestApplicationContext) => WebSocketAdapter;
  readonly connect: (url: string) => Promise<GatewayClient>;
}

const socketIo: Platform = {
  adapter: IoAdapter,
  async connect(url) {
    const socket = io(url, { transports: ['websocket'], forceNew: true });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('connect_error', reject);
    });
    return {
      ask: (event, data) =>
        new Promise((resolve) => {
          socket.offAny().onAny((answer: string, told: unknown) => resolve([answer, told]));
          socket.emit(event, data);
        }),
      close: () => void socket.close(),
    };
  },
};

const ws: Platform = {
  adapter: WsAdapter,
  async connect(url) {
    const socket = new WebSocket(url.replace('http', 'ws'));
    await once(socket, 'open');
    return {
      async ask(event, data) {
        const answer = once(socket, 'message');
        socket.send(JSON.stringify({ event, data }));
        const told = JSON.parse(String((await answer)[0])) as { event: string; data: unknown };
        return [told.event, told.data];
      },
      close: () => socket.close(),
    };
  },
};

export const PLATFORMS: readonly [string, Platform][] = [
  ['socket.io', socketIo],
  ['ws', ws],
];
