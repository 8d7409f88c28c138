import { Controller, Get, Module } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { currentLock, Locked } from 'nestjs-distributed-lock';
import { application, inMemory, listen } from './apps.js';
import { Crossing } from './crossing.js';

@Controller('reports')
class Reports {
  @Get()
  @Locked('report_:tenant')
  async make(): Promise<string | undefined> {
    return currentLock()?.key;
  }
}

@Module({ controllers: [Reports] })
class ReportsModule {}

it('a key may name a parameter of the path that RouterModule puts before a module', async () => {
  const routes = RouterModule.register([{ path: 'tenants/:tenant', module: ReportsModule }]);
  const app = await application({ imports: [inMemory(new Crossing()), ReportsModule, routes] });
  const answer = await fetch(`${await listen(app)}/tenants/7/reports`);
  await expect(answer.text()).resolves.toBe('report_7');
});

it('a key may name a parameter of the global prefix', async () => {
  const app = await application({ imports: [inMemory(new Crossing())], controllers: [Reports] });
  app.setGlobalPrefix('api/:tenant');
  const answer = await fetch(`${await listen(app)}/api/8/reports`);
  await expect(answer.text()).resolves.toBe('report_8');
});

it('without such a prefix the application does not start', async () => {
  const app = await application({ imports: [inMemory(new Crossing())], controllers: [Reports] });
  await expect(app.init()).rejects.toThrow(':tenant is a placeholder');
});
