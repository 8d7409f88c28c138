import { Controller, HttpCode, Param, ParseIntPipe, Post } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { randomUUID } from 'node:crypto';

const BUYERS = 50;

/** Fifty buyers at once for the page's button; a browser itself sends six requests at a time. */
@Controller('sales/:id/crowd')
export class CrowdController {
  constructor(private readonly host: HttpAdapterHost) {}

  @Post()
  @HttpCode(200)
  async send(@Param('id', ParseIntPipe) id: number): Promise<{ buyers: number; bought: number }> {
    const { port } = this.host.httpAdapter.getHttpServer().address();
    const crowd = randomUUID().slice(0, 4);
    const buy = async (_: unknown, index: number): Promise<boolean> => {
      const response = await fetch(`http://localhost:${port}/sales/${id}/purchases`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ buyer: `crowd-${crowd}-${index + 1}` }),
      });
      await response.body?.cancel();
      return response.ok;
    };
    const answers = await Promise.all(Array.from({ length: BUYERS }, buy));
    return { buyers: BUYERS, bought: answers.filter(Boolean).length };
  }
}
