import type { Connection } from '../../test/support/harness-connection.js';

export function urlOf(to: Connection): string {
  if ('url' in to) return to.url;
  throw new Error(`${to.backend} is not at one URL`);
}
