/** Returns the message of an error. A failed connection to `localhost` has none, but an error for each address. */
export function errorText(error: unknown): string {
  const { message, errors }: { message?: unknown; errors?: unknown } = Object(error);
  if (message === '' && Array.isArray(errors)) return errors.map(errorText).join('; ');
  return typeof message === 'string' ? message : textOf(error);
}

/** Returns the text of any value. `String` alone throws for an object without a prototype. */
export function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return 'an object that has no text';
  }
}
