/** Returns the message of an error. An AggregateError without a message has the messages of its errors. */
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
