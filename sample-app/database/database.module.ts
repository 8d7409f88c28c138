import { type DynamicModule, Inject, Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SETTINGS, type Settings } from '../settings.js';
import { databaseOptions } from './database-options.js';
import { seed } from './seed.js';
import { Transactions } from './transactions.js';

@Module({})
export class DatabaseModule implements OnModuleInit {
  static with({ saleDb }: { readonly saleDb: string }): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      imports: [TypeOrmModule.forRoot(databaseOptions(saleDb))],
      providers: [Transactions],
      exports: [Transactions],
    };
  }

  constructor(
    private readonly transactions: Transactions,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async onModuleInit(): Promise<void> {
    // Processes that start together seed the same file: whoever finds it locked tries again.
    await this.transactions.run((manager) => seed(manager, this.settings.stock));
  }
}
