import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { WebSocket } from 'ws';

@WebSocketGateway()
class Board {
  @SubscribeMessage('move')
  @Locked('cell_:id', { waitMs: 0 })
  async move(@MessageBody() { id }: Move) {
    return { event: 'moved', data: id };
  }
}

interface Move {
  readonly id: string;
}

@Module({
  imports: [DistributedLockModule.forRoot({ backend: memory(), logger: false })],
  providers: [Board],
})
class Game {}

const app = await NestFactory.create(Game, { logger: ['error'] });
app.useWebSocketAdapter(new WsAdapter(app));
await app.listen(0);

const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
await once(socket, 'open');

async function move(id: string): Promise<void> {
  const answer = once(socket, 'message');
  socket.send(JSON.stringify({ event: 'move', data: { id } }));
  const { event, data } = JSON.parse(String((await answer)[0])) as { event: string; data: string | { code: string } };
  console.log(event, typeof data === 'string' ? data : data.code);
}

const other = await app.get(LockService).acquire('cell_b4');
await move('b4');
await other.release();
await move('b4');
socket.close();
await app.close();
