/** Returns the message of an error. A failed connection to `localhost` has an empty one, and an error per address. */
export function errorText(error: unknown): string {
  const { message, errors }: { message?: unknown; errors?: unknown } = Object(error);
  if (message === '' && Array.isArray(errors)) return errors.map(errorText).join('; ');
  return typeof message === 'string' ? message : stringifySafely(error);
}

/** Returns any value as text, also an object without a prototype, for which `String` throws. */
export function stringifySafely(value: unknown): string {
  try {
    return String(value);
  } catch {
    return 'an object that has no text';
  }
}
