/** A number that a driver keeps about its connection, as text; `undefined` where it keeps none. */
export function idIn(client: unknown, property: string): string | undefined {
  const id: unknown = typeof client === 'object' && client ? Reflect.get(client, property) : undefined;
  return typeof id === 'number' ? String(id) : undefined;
}
