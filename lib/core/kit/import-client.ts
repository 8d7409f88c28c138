import { LockConfigurationError } from '../contract/errors.js';

interface ClientPackage {
  /** Call in the user's code that needs the package, for the message. */
  readonly neededBy: string;
  readonly name: string;
  readonly install: string;
  readonly option: string;
}

/**
 * Loads a client library.
 * @throws LockConfigurationError when the library is not installed, or cannot be loaded, as in a bundle
 */
export async function importClient<T>(
  load: () => Promise<T>,
  { neededBy, name, install, option }: ClientPackage,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // Under jest the error is from another realm, so that `instanceof Error` is false.
    const { code }: { readonly code?: unknown } = Object(error);
    const isMissing = String(code).endsWith('MODULE_NOT_FOUND');
    const cure = isMissing
      ? `npm install ${install}`
      : `it could not be loaded (${String(error)}). A bundler should leave it out of the bundle`;
    throw new LockConfigurationError(`${neededBy} needs the package ${name}: ${cure}`, option);
  }
}
