import { Injectable, Module } from '@nestjs/common';
import { DistributedLockModule, Locked } from 'nestjs-distributed-lock';
import { redis } from 'nestjs-distributed-lock/redis';

@Injectable()
export class Sales {
  stock = 1;

  @Locked('sale_:id', { waitMs: 5_000 })
  async buy(id: string): Promise<string> {
    const seen = this.stock;
    await new Promise((resolve) => void setImmediate(resolve)); // a database
    if (seen === 0) return `${id} is sold out`;
    this.stock = seen - 1;
    return `bought ${id}`;
  }
}

@Module({
  imports: [DistributedLockModule.forRoot(redis({ url: 'redis://redis.example:6379' }))],
  providers: [Sales],
})
export class AppModule {}
