import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

import { Link, type LinkListener, type Way } from './link.js';
import { RequestMatcher } from './request-matcher.js';

/** `up` is from the client to the server, `down` the way back. */
export type Direction = Way | 'both';

interface Trap {
  readonly way: Way;
  readonly catches: (link: Link, chunk: Buffer) => boolean;
  readonly spring: (link: Link, chunk: Buffer) => void;
}

/**
 * A TCP proxy that does to a client what networks do. It knows no protocol: a request is a chunk of bytes that matches a
 * pattern, its reply is what comes down the same connection next.
 */
export class FaultProxy {
  readonly port: number;
  #target: { readonly host: string; readonly port: number };
  readonly #links = new Set<Link>();
  readonly #requestListeners = new Set<(chunk: Buffer) => void>();
  readonly #modes = { up: 'forward', down: 'forward' } as Record<Way, 'forward' | 'hold' | 'drop'>;
  readonly #delays: Record<Way, number> = { up: 0, down: 0 };
  readonly #linkListener: LinkListener = {
    received: (chunk) => this.#requestListeners.forEach((listener) => listener(chunk)),
    leaving: (link, way, chunk) => this.#spring(link, way, chunk),
    closed: (link) => this.#links.delete(link),
  };
  #traps: Trap[] = [];
  #server: Server;

  private constructor(server: Server, target: { readonly host: string; readonly port: number }) {
    this.#server = server;
    this.#target = target;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (client) => this.#connect(client));
  }

  /** @param target the server behind it; `host` defaults to 127.0.0.1, on which the proxy itself listens */
  static async start(target: { readonly host?: string; readonly port: number }): Promise<FaultProxy> {
    return new FaultProxy(await listen(0), { host: '127.0.0.1', ...target });
  }

  /** How many clients are connected, as far as the proxy can see. */
  get connections(): number {
    return this.#links.size;
  }

  /** A black hole with a memory: bytes, ends and resets stay in the proxy and come out in order on `resume()`. */
  pause(direction: Direction = 'both'): void {
    this.#setMode(direction, 'hold');
  }

  /** A black hole: everything vanishes, also ends and resets. */
  drop(direction: Direction = 'both'): void {
    this.#setMode(direction, 'drop');
  }

  /** Ends `pause` and `drop`. A connection that really lost something is reset, as its stream has a gap. */
  resume(): void {
    this.#setMode('both', 'forward');
    for (const link of this.#links) if (link.pipes.up.lossy || link.pipes.down.lossy) link.reset();
  }

  /** Everything sent from now on takes this much longer, until `delay(0)`. */
  delay(ms: number, direction: Direction = 'both'): void {
    for (const way of ways(direction)) {
      this.#delays[way] = ms;
      for (const link of this.#links) link.pipes[way].delayMs = ms;
    }
  }

  /** Has new connections lead to another server, as a name does that has moved; the present ones stay where they are. */
  redirect(target: { readonly port: number }): void {
    this.#target = { ...this.#target, ...target };
  }

  /** New connections are refused until `accept()`; the present ones live on. */
  refuse(): void {
    this.#server.close();
  }

  /** Listens again after `refuse()`, on the same port. */
  async accept(): Promise<void> {
    this.#server = await listen(this.port);
    this.#server.on('connection', (client) => this.#connect(client));
  }

  /**
   * Forgets connections as a NAT or a load balancer does: those that exist now are black holes for good, also after
   * `resume()`, while new ones work. Only `reset()` and `close()` end them. The kernel still answers TCP keep-alive probes.
   */
  forget(): void {
    for (const link of this.#links) link.forget();
  }

  /** The next request that matches reaches the server, and its connection is forgotten then. Resolves at that moment. */
  forgetAfter(pattern: string | RegExp): Promise<void> {
    return this.#armForRequest(pattern, (link, chunk) => {
      link.write('up', chunk);
      return Promise.resolve(link.forget());
    });
  }

  /** Resets every connection on both sides. */
  reset(): void {
    for (const link of this.#links) link.reset();
  }

  /**
   * A reply lost after its request was executed: the next request that matches reaches the server, what the server answers is
   * swallowed, and the connection is reset once the server has answered and closed its side. Resolves then.
   */
  dropReplyAfter(pattern: string | RegExp): Promise<void> {
    return this.#armForRequest(pattern, (link, chunk) => link.loseReplyTo(chunk));
  }

  /** Holds the reply to the next request that matches, and what comes after it, for so long. Resolves when it was delivered. */
  delayReplyOf(pattern: string | RegExp, ms: number): Promise<void> {
    return this.#armForRequest(pattern, (link, chunk) => {
      const delivered = link.pipes.down.delayNext(ms);
      link.write('up', chunk);
      return delivered;
    });
  }

  /** Half of the next chunk that goes this way is forwarded, then both connections end. Resolves when that is done. */
  cutMidFrame(way: Way = 'down'): Promise<void> {
    return this.#arm(
      way,
      (_link, chunk) => chunk.length > 1,
      (link, chunk) => Promise.resolve(link.cutWithin(way, chunk)),
    );
  }

  /** Calls `listener` with each chunk a client sends, forwarded or not. Returns what ends it. */
  onRequest(listener: (chunk: Buffer) => void): () => void {
    this.#requestListeners.add(listener);
    return () => this.#requestListeners.delete(listener);
  }

  /** Resets what is connected and stops listening. */
  async close(): Promise<void> {
    this.reset();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #connect(client: Socket): void {
    const server = connect({ ...this.#target, allowHalfOpen: true });
    const link = new Link(client, server, this.#linkListener);
    for (const way of ways('both')) {
      link.pipes[way].mode = this.#modes[way];
      link.pipes[way].delayMs = this.#delays[way];
    }
    this.#links.add(link);
  }

  #setMode(direction: Direction, mode: 'forward' | 'hold' | 'drop'): void {
    for (const way of ways(direction)) {
      this.#modes[way] = mode;
      for (const link of this.#links) link.pipes[way].mode = mode;
    }
  }

  #armForRequest(pattern: string | RegExp, spring: (link: Link, chunk: Buffer) => Promise<void>): Promise<void> {
    const matchers = new WeakMap<Link, RequestMatcher>();
    return this.#arm(
      'up',
      (link, chunk) => {
        const matcher = matchers.get(link) ?? new RequestMatcher(pattern);
        matchers.set(link, matcher);
        return matcher.matches(chunk);
      },
      spring,
    );
  }

  #arm(way: Way, catches: Trap['catches'], spring: (link: Link, chunk: Buffer) => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#traps.push({ way, catches, spring: (link, chunk) => void spring(link, chunk).then(resolve, reject) });
    });
  }

  #spring(link: Link, way: Way, chunk: Buffer): boolean {
    const trap = this.#traps.find((one) => one.way === way && one.catches(link, chunk));
    if (trap === undefined) return false;
    this.#traps = this.#traps.filter((one) => one !== trap);
    trap.spring(link, chunk);
    return true;
  }
}

function ways(direction: Direction): readonly Way[] {
  return direction === 'both' ? ['up', 'down'] : [direction];
}

async function listen(port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
