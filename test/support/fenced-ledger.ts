import { CreateDistributedLock1760000000000, fenced } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { type DatabaseConnection, dataSourceOptions } from './harness-connection.js';

/** A table of an application, in the database with the locks: who wrote, under which token. Only the newest holder may. */
export class FencedLedger implements AsyncDisposable {
  private constructor(private readonly dataSource: DataSource) {}

  /** Makes the tables where they are missing. */
  static async open(connection: DatabaseConnection): Promise<FencedLedger> {
    const options = await dataSourceOptions(connection);
    const migrations = [CreateDistributedLock1760000000000];
    const dataSource = new DataSource(Object.assign({ ...options }, { migrations, migrationsRun: true }));
    await dataSource.initialize();
    await dataSource.query('create table if not exists ledger (token bigint not null)');
    return new FencedLedger(dataSource);
  }

  /** Writes as a careless holder does, without asking first. Resolves to what stopped it, if anything. */
  async write(lock: { readonly key: string; readonly fencingToken: bigint }): Promise<string | null> {
    try {
      await fenced(this.dataSource.manager, lock.key, lock, (manager) =>
        manager.query(`insert into ledger values (${lock.fencingToken})`),
      );
      return null;
    } catch (error) {
      return String(error);
    }
  }

  async tokens(): Promise<bigint[]> {
    const rows: { token: unknown }[] = await this.dataSource.query(
      'select cast(token as char(20)) as token from ledger',
    );
    return rows.map(({ token }) => BigInt(String(token).trim()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dataSource.destroy();
  }
}
