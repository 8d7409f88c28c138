import { DataSource, type DataSourceOptions, DriverPackageNotInstalledError } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';

/** Nothing of the application's runs when a connection of the locks' is opened. */
const NOTHING_AT_START = { migrations: [], synchronize: false, dropSchema: false, migrationsRun: false, cache: false };

/** @throws LockConfigurationError when the driver's package is not installed */
export function makeDataSource(options: DataSourceOptions, changes: Partial<DataSourceOptions> = {}): DataSource {
  try {
    return new DataSource(Object.assign({ ...options }, NOTHING_AT_START, changes));
  } catch (error) {
    if (!(error instanceof DriverPackageNotInstalledError)) throw error;
    throw new LockConfigurationError(
      `typeorm() needs the driver of data sources of type "${options.type}": ${error.message}`,
      'dataSource',
    );
  }
}
