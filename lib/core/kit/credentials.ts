/** User name and password for a server. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export function areCredentials(value: unknown): value is Credentials {
  const { username, password }: { username?: unknown; password?: unknown } = Object(value);
  return typeof username === 'string' && username !== '' && typeof password === 'string';
}
