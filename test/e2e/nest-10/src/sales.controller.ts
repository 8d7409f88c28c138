import { Controller, Param, Post } from '@nestjs/common';
import { Locked, LockService } from 'nestjs-distributed-lock';

@Controller('sales')
export class SalesController {
  constructor(private readonly locks: LockService) {}

  @Post(':id/purchases')
  @Locked('lock_sale_:id')
  async buy(@Param('id') id: string): Promise<string> {
    return this.locks.withLock(`stock_${id}`, () => `sold ${id}`);
  }
}
