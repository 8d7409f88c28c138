import { Catch, UseFilters } from '@nestjs/common';
import { BaseWsExceptionFilter, MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  DistributedLockModule,
  type DistributedLockExtras,
  Locked,
  LockError,
  LockService,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { application, listen } from '../nest/apps.js';
import { type GatewayClient, PLATFORMS } from './gateway-clients.js';

interface Move {
  readonly id: string;
}

@WebSocketGateway()
class Board {
  constructor(private readonly locks: LockService) {}

  @SubscribeMessage('move')
  @Locked('cell_:id', { waitMs: 0 })
  async move(@MessageBody() { id }: Move): Promise<object> {
    return { event: 'moved', data: id };
  }

  @Locked('cell_:id', { waitMs: 0 })
  @SubscribeMessage('bare')
  async bare(_client: object, data: Move): Promise<object> {
    return { event: 'moved', data: data.id };
  }

  @SubscribeMessage('own')
  async own(@MessageBody() { id }: Move): Promise<object> {
    return this.locks.withLock(`cell_${id}`, () => ({ event: 'moved', data: id }), { waitMs: 0 });
  }
}

/** Gateways have no global filters: whoever wants everything caught says it on the class. */
@UseFilters(new BaseWsExceptionFilter())
@WebSocketGateway()
class CatchingBoard extends Board {}

@Catch(LockError)
class OwnFilter extends BaseWsExceptionFilter<LockError> {
  override catch(error: LockError, host: Parameters<BaseWsExceptionFilter['catch']>[1]): void {
    this.emitMessage(host.switchToWs().getClient(), 'own', { code: error.code });
  }
}

@UseFilters(OwnFilter)
@WebSocketGateway()
class OwnBoard extends Board {}

const open = new Set<GatewayClient>();

afterEach(() => {
  for (const client of open) client.close();
  open.clear();
});

describe.each(PLATFORMS)('a client of a gateway, %s', (_, { adapter, connect }) => {
  async function start(gateway: new (locks: LockService) => Board, extras: DistributedLockExtras = {}) {
    const module = DistributedLockModule.forRoot({ backend: memory(), exceptionFilter: true, ...extras });
    const app = await application({ imports: [module], providers: [gateway] });
    app.useWebSocketAdapter(new adapter(app));
    const client = await connect(await listen(app));
    open.add(client);
    return { client, locks: app.get(LockService) };
  }

  it.each([
    ['move', Board],
    ['bare', Board],
    ['own', Board],
    ['move', CatchingBoard],
    ['own', CatchingBoard],
  ])('is told that the key of "%s" is held, and about which message, in a %p', async (event, gateway) => {
    const { client, locks } = await start(gateway);
    expect(await client.ask(event, { id: 'a1' })).toEqual(['moved', 'a1']);
    const held = await locks.acquire('cell_a1');
    const [told, error] = await client.ask(event, { id: 'a1' });
    expect(told).toBe('exception');
    expect(error).toEqual({
      status: 'error',
      code: 'LOCK_TIMEOUT',
      message: 'Locked by another request, try again later',
      cause: { pattern: event, data: { id: 'a1' } },
    });
    expect(await client.ask(event, { id: 'b2' })).toEqual(['moved', 'b2']);
    await held.release();
  });

  it.each(['move', 'bare'])('is told that "%s" names no lock without an id', async (event) => {
    const { client } = await start(Board);
    const [told, error] = await client.ask(event, { cell: 'a1' });
    expect(told).toBe('exception');
    expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION', message: expect.stringContaining('missing') });
  });

  it('is told in the words of a filter for lock errors that the gateway has', async () => {
    const { client, locks } = await start(OwnBoard);
    const held = await locks.acquire('cell_a1');
    expect(await client.ask('move', { id: 'a1' })).toEqual(['own', { code: 'LOCK_TIMEOUT' }]);
    await held.release();
  });

  it('hears what Nest says of any error where the filter is turned off', async () => {
    const { client, locks } = await start(Board, { exceptionFilter: false });
    const held = await locks.acquire('cell_a1');
    const [told, error] = await client.ask('move', { id: 'a1' });
    expect(told).toBe('exception');
    expect(error).toMatchObject({ status: 'error', message: 'Internal server error' });
    await held.release();
  });
});
