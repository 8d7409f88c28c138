import { Module } from '@nestjs/common';
import { SaleModule } from '../sale/sale.module.js';
import { Auditor } from './auditor.js';
import { RestockJob } from './restock-job.js';

@Module({ imports: [SaleModule], providers: [Auditor, RestockJob] })
export class JobsModule {}
