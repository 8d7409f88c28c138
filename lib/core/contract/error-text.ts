/** Returns an error in words. A failure to connect to `localhost` has no message, but an error for each address. */
export function errorText(error: unknown): string {
  const { message, errors }: { message?: unknown; errors?: unknown } = Object(error);
  if (message === '' && Array.isArray(errors)) return errors.map(errorText).join('; ');
  return typeof message === 'string' ? message : String(error);
}
