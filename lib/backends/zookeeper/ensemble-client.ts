import { randomInt } from 'node:crypto';
import { isLockError, pause, ReportedHealth, systemClock, within } from '../../core/index.js';
import { adviceOn, silenceMsOf } from './session-times.js';
import type { Handshake } from './transport/single-connection-client.js';
import { ZooKeeperConnection } from './transport/connection.js';
import type { ResolvedOptions } from './options.js';
import { ConnectionLostError, SessionExpiredError, SessionRefusedError } from './error.js';
import { ZooKeeperSession } from './session.js';
import { ZooKeeperWire } from './transport/wire.js';

type EnsembleClientOptions = Pick<
  ResolvedOptions,
  'servers' | 'sessionTtlMs' | 'requestTimeoutMs' | 'patienceMs' | 'auth'
>;

/**
 * A server that is just starting may stay silent on the connections that it accepts, and then answer the next at once.
 */
const SHORTEST_HANDSHAKE_MS = 500;
const SHORTEST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;
const LONGEST_FAREWELL_MS = 1_000;

/**
 * The one session of a process. It is made when first asked for, moves to the next server when a connection ends, and
 * is made anew when it has expired. Servers are asked one after the other, from a random one on.
 */
export class EnsembleClient {
  readonly health = new ReportedHealth();
  /** They wait for the session. Each is called once, with the session or with a failure. */
  readonly #requests = new Set<(outcome: ZooKeeperSession | Error) => void>();
  #session: ZooKeeperSession | undefined;
  /** The present or the last one, or one that is being opened. */
  #connection: ZooKeeperConnection | undefined;
  /** Whether that connection carries the session, or did until it ended. */
  #isUp = false;
  /** The last failure, once all servers have refused us since the last connection ended. */
  failure: Error | undefined;
  #nextServer: number;
  #wire: Promise<ZooKeeperWire> | undefined;
  /** How long the next server has to let us in. Each silence doubles it. */
  #handshakeMs = SHORTEST_HANDSHAKE_MS;
  #started = false;
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor(private readonly options: EnsembleClientOptions) {
    this.#nextServer = randomInt(options.servers.length);
  }

  /**
   * The session, with a connection that is up. Waits until one server accepts us, or all have refused.
   * @throws ConnectionLostError, SessionRefusedError, LockConfigurationError when the client is missing
   */
  async connected(): Promise<ZooKeeperSession> {
    if (this.#closing) throw closed();
    if (this.#session && this.#up) return this.#session;
    if (!this.#started) void this.#run();
    return new Promise((resolve, reject) => {
      const settle = (outcome: ZooKeeperSession | Error): void => {
        patience.cancel();
        this.#requests.delete(settle);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const onTime = (): void =>
        settle(new ConnectionLostError(this.health.current.detail ?? 'no server has let us in yet'));
      const patience = systemClock.schedule(this.options.patienceMs, onTime);
      this.#requests.add(settle);
    });
  }

  /** Ends the session on the server, and so all its nodes, if that can be done soon. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  get #up(): ZooKeeperConnection | undefined {
    return this.#isUp && this.#connection?.alive === true ? this.#connection : undefined;
  }

  async #close(): Promise<void> {
    this.#settle(closed());
    const farewellMs = Math.min(this.options.sessionTtlMs / 3, LONGEST_FAREWELL_MS);
    if (this.#session) await within(systemClock, farewellMs, this.#sayFarewell(systemClock.now() + farewellMs));
    this.#closed = true;
    this.#connection?.cut(closed());
    this.#session?.end();
  }

  /** A session whose connection is down may come back. Without a farewell its nodes would stay until it expires. */
  async #sayFarewell(until: number): Promise<void> {
    while (this.#session && systemClock.now() < until) {
      try {
        if (this.#up) return void (await this.#up.ask('closeSession', {}));
      } catch {
        // The connection has ended. The next one may come in time.
      }
      await pause(systemClock, SHORTEST_PAUSE_MS);
    }
  }

  /** Never rejects. Pauses before it asks a server again, also one that lets us in and closes. */
  async #run(): Promise<void> {
    this.#started = true;
    for (let failures = 0; !this.#closed; failures += 1) {
      const error = await this.#connect().catch(asError);
      const wasUp = this.#isUp;
      if (wasUp) failures = 0;
      this.#onDisconnected(error);
      if (error instanceof SessionExpiredError || (failures + 1) % this.options.servers.length > 0) continue;
      if (!wasUp) this.#fail(error);
      if (!this.#closed) await this.#rest(failures / this.options.servers.length);
    }
  }

  /** The first pauses are short, because a server may be restarting. */
  async #rest(rounds: number): Promise<void> {
    const longest = Math.min(SHORTEST_PAUSE_MS * 2 ** Math.min(rounds, 10), LONGEST_PAUSE_MS);
    await pause(systemClock, longest / 2 + randomInt(Math.ceil(longest / 2)), { background: true });
  }

  /** Resolves to what has ended the connection. Rejects with what has kept it from being made. */
  async #connect(): Promise<Error> {
    this.#wire ??= ZooKeeperWire.load();
    const handshake = this.#handshake(await this.#wire);
    if (this.#closed) throw closed();
    const connection = new ZooKeeperConnection(handshake, this.#handshakeMs);
    this.#connection = connection;
    await this.#letIn(connection);
    try {
      // Another server may know less than the one before has told us.
      if (this.#session) await connection.ask('sync', { path: '/' });
    } catch (error) {
      connection.cut(asError(error));
      throw error;
    }
    this.#onConnected(connection);
    return connection.ended;
  }

  async #letIn(connection: ZooKeeperConnection): Promise<void> {
    const { sessionTtlMs, requestTimeoutMs } = this.options;
    const longest = Math.max(silenceMsOf(sessionTtlMs, requestTimeoutMs), SHORTEST_HANDSHAKE_MS);
    try {
      await connection.ready;
    } finally {
      const wasSilent = systemClock.now() - connection.openedAt >= this.#handshakeMs;
      this.#handshakeMs = wasSilent ? Math.min(2 * this.#handshakeMs, longest) : SHORTEST_HANDSHAKE_MS;
    }
  }

  #handshake(wire: ZooKeeperWire): Handshake {
    const { servers, sessionTtlMs, requestTimeoutMs, auth } = this.options;
    const server = servers[this.#nextServer % servers.length];
    if (!server) throw new Error('there is no server');
    this.#nextServer += 1;
    return { wire, server, sessionTtlMs, requestTimeoutMs, ticket: this.#session?.ticket, auth };
  }

  #onConnected(connection: ZooKeeperConnection): void {
    this.#isUp = true;
    if (this.#session) this.#session.resume(connection);
    else this.#session = new ZooKeeperSession(connection, systemClock);
    this.health.advise('session', adviceOn(connection.sessionMs, this.options.sessionTtlMs));
    this.failure = undefined;
    this.health.report('up');
    this.#settle(this.#session);
  }

  #onDisconnected(error: Error): void {
    this.#isUp = false;
    this.health.advise('session', undefined);
    if (error instanceof SessionExpiredError) {
      this.#session?.end();
      this.#session = undefined;
    }
    if (error instanceof SessionRefusedError || isLockError(error)) this.#fail(error);
    if (!this.#closing) this.health.report('down', error.message);
  }

  #fail(error: Error): void {
    this.failure = error;
    this.#settle(error);
  }

  #settle(outcome: ZooKeeperSession | Error): void {
    for (const settle of this.#requests) settle(outcome);
  }
}

function closed(): Error {
  return new SessionRefusedError('the backend is closed');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
