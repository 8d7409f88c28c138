import { DataSource, type DataSourceOptions, DriverPackageNotInstalledError } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';

/** Options by which a data source of the locks runs no migration or synchronization of the application. */
const NO_START_ACTIONS = { migrations: [], synchronize: false, dropSchema: false, migrationsRun: false, cache: false };

/** @throws LockConfigurationError when the driver's package is not installed */
export function createDataSource(options: DataSourceOptions, overrides: Partial<DataSourceOptions> = {}): DataSource {
  try {
    return new DataSource(Object.assign({ ...options }, NO_START_ACTIONS, overrides));
  } catch (error) {
    if (!(error instanceof DriverPackageNotInstalledError)) throw error;
    throw new LockConfigurationError(
      `typeorm() needs the driver of data sources of type "${options.type}": ${error.message}`,
      'dataSource',
    );
  }
}

/**
 * Makes `lockDataSource` notify the subscribers of the application, also those added later: providers of Nest push
 * themselves to the subscribers of the application's data source.
 */
export function shareSubscribers(lockDataSource: DataSource, applicationDataSource: DataSource): void {
  const { subscribers } = lockDataSource;
  // A data source has no subscribers before it is initialized, not even those of its options.
  const get = () => (applicationDataSource.isInitialized ? applicationDataSource.subscribers : subscribers);
  Object.defineProperty(lockDataSource, 'subscribers', { get });
}
