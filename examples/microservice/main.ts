import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import type { AddressInfo, Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { DistributedLockModule, Locked } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { firstValueFrom } from 'rxjs';

interface Order {
  readonly sale: string;
  readonly buyer: string;
}

@Controller()
class SalesController {
  private stock = 1;

  @MessagePattern('buy')
  @Locked('sale_:sale') // a property of the payload
  async buy({ buyer }: Order): Promise<string> {
    const { stock } = this;
    await sleep(50); // a slow database
    if (stock === 0) return `sold out for ${buyer}`;
    this.stock = stock - 1;
    return `sold to ${buyer}`;
  }
}

@Module({ imports: [DistributedLockModule.forRoot(memory())], controllers: [SalesController] })
class AppModule {}

const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, {
  transport: Transport.TCP,
  options: { host: '127.0.0.1', port: 0 }, // a free one
  logger: ['error', 'warn'],
});
await app.listen();

const { port } = app.unwrap<Server>().address() as AddressInfo;
const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
await client.connect();
const buyers = ['ann', 'bob'];
const answers = buyers.map((buyer) => firstValueFrom(client.send<string>('buy', { sale: 'shoes', buyer })));
for (const answer of await Promise.all(answers)) console.log(answer);
await client.close();
await app.close();
