import { DataSource, type DataSourceOptions, DriverPackageNotInstalledError } from 'typeorm';
import { LockConfigurationError } from '../../../core/index.js';

/** @throws LockConfigurationError when the driver's package is not installed */
export function makeDataSource(options: DataSourceOptions): DataSource {
  try {
    return new DataSource(options);
  } catch (error) {
    if (!(error instanceof DriverPackageNotInstalledError)) throw error;
    throw new LockConfigurationError(
      `typeorm() needs the driver of data sources of type "${options.type}": ${error.message}`,
      'dataSource',
    );
  }
}
