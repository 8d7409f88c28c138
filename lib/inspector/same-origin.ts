import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Refuses requests that a page of another origin makes the user's browser send. Browsers name the origin of every POST,
 * and ask the server before they send JSON to another origin.
 * @throws ForbiddenException; UnsupportedMediaTypeException
 */
export function assertSameOrigin(headers: IncomingHttpHeaders): void {
  if (!isSameOrigin(headers)) throw new ForbiddenException('Keys are freed from the page itself');
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') throw new UnsupportedMediaTypeException();
}

/**
 * Reads `Sec-Fetch-Site`, which browsers send from secure pages only, or else compares the origin with the host. `URL`
 * removes the default port, which some proxies add to the host.
 */
function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin = '' } = headers;
  const host = headers.host ?? headers[':authority'];
  if (!URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  const ownUrl = `${protocol}//${String(host ?? '')}`;
  return URL.canParse(ownUrl) && new URL(ownUrl).host === originHost;
}
