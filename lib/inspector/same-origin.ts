import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Refuses what a page of another origin can have a browser send in its user's name. A browser says by itself where a
 * POST comes from; JSON it never sends to another origin unasked.
 * @throws ForbiddenException; UnsupportedMediaTypeException
 */
export function assertSameOrigin(headers: IncomingHttpHeaders): void {
  if (!isSameOrigin(headers)) throw new ForbiddenException('Keys are freed from the page itself');
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') throw new UnsupportedMediaTypeException();
}

/** `Sec-Fetch-Site` is right behind proxies, too. Browsers send it where the page is secure. */
function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin = '' } = headers;
  const host = headers.host ?? headers[':authority'];
  return URL.canParse(origin) && new URL(origin).host === host;
}
