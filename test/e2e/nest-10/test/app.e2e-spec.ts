import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import * as request from 'supertest';
import type { App } from 'supertest/types';
import { APP_MODULES } from '../src/app.modules';

describe.each(APP_MODULES)('AppModule (e2e) with %s', (_, AppModule) => {
  let app: INestApplication<App>;

  beforeEach(async () => {
    const moduleFixture = await Test.createTestingModule({ imports: [AppModule] }).compile();
    app = moduleFixture.createNestApplication();
    await app.init();
  });

  afterEach(async () => {
    await app.close();
  });

  it('sells in the first application', () =>
    request(app.getHttpServer()).post('/sales/1/purchases').expect(201).expect('sold 1'));

  it('sells in the second application of the same process', () =>
    request(app.getHttpServer()).post('/sales/1/purchases').expect(201).expect('sold 1'));
});
