/** A user of memcached's file of users (`-Y`). */
export interface MemcachedCredentials {
  readonly user: string;
  readonly password: string;
}

/** On the way a blank ends the user, and in the file a colon does. */
const USER = /^[^\s:\p{C}]{1,100}$/u;
const PASSWORD = /^[^\s\p{C}]{1,100}$/u;

export function areCredentials(value: unknown): value is MemcachedCredentials {
  const { user, password }: { user?: unknown; password?: unknown } = Object(value);
  return typeof user === 'string' && typeof password === 'string' && USER.test(user) && PASSWORD.test(password);
}
