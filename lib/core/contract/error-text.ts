/** An error in words. A failure to connect to `localhost`, as `::1` and `127.0.0.1`, has several, and no message. */
export function errorText(error: unknown): string {
  const { message, errors }: { message?: unknown; errors?: unknown } = Object(error);
  if (message === '' && Array.isArray(errors)) return errors.map(errorText).join('; ');
  return typeof message === 'string' ? message : String(error);
}
