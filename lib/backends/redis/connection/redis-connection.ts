import { type Clock, NotSentError, ReplyTimeouts, type ReportedHealth, systemClock } from '../../../core/index.js';
import type { ClientLifecycle } from './client-lifecycle.js';
import { ClientState, type ClientStateListener } from './client-state.js';
import { CommandBatch, PendingRequest, type PendingRequestListener, type SendMode } from './command-batch.js';
import { GivenClientLifecycle } from './given-client-lifecycle.js';
import { KeyRouting } from './key-routing.js';
import { KeyTracking } from './key-tracking.js';
import { OwnClientLifecycle } from './own-client-lifecycle.js';
import type { ClientSource, RedisClient, RedisCommand } from './redis-client.js';
import type { RedisRequest, RedisServers } from './redis-servers.js';
import { RequestsUnderWay } from './requests-under-way.js';
import { reportServerAdvice } from './server-advice.js';
import { WaitingRequests } from './waiting-requests.js';

const FIRST_SEND_MODE: SendMode = { sendsSource: false, hasOwnCommand: false };
/** Idle time after which a connection is tested before its next use: firewalls drop idle connections without notice. */
const MAX_IDLE_MS = 30_000;
const MAX_WAITING_REQUESTS_TO_TRACK = 500;

interface RoutingOptions {
  /** Start of the names of all keys. @default 'lock' */
  readonly prefix?: string;
  /** Slot of a key on a node of a cluster. */
  readonly slotOfKey?: (leaseKey: string) => number;
}

/**
 * Connection to one server. Every command succeeds or fails within a bounded time, whatever the settings of the client
 * and the state of the server.
 *
 * The requests of one event loop iteration are sent in one write. A bounded number of commands is under way at a time.
 * Further requests wait; of these, renewals and releases are sent before acquisitions. A request that fails while it
 * waits is never sent. The server may carry out a sent request late, even after its connection was replaced.
 *
 * The server counts as silent when it has sent no byte for the time-out. One slow reply among others is no silence.
 */
export class RedisConnection implements RedisServers {
  readonly #source: ClientSource;
  readonly #lifecycle: ClientLifecycle;
  readonly #clientState: ClientState;
  readonly #replyTimeouts: ReplyTimeouts;
  readonly #waitingRequests = new WaitingRequests();
  readonly #requestsUnderWay = new RequestsUnderWay();
  #isSendScheduled = false;
  #isResendReserved = false;
  #unusableSince = 0;
  /** Start of the present silence: the server's last sign of life, or the first request to an idle server. */
  #silentSince = 0;
  #bytesReadAtSilenceStart: number | undefined;
  readonly tracking: KeyTracking;
  readonly #routing: KeyRouting;

  constructor(
    source: ClientSource,
    readonly timeoutMs: number,
    private readonly clock: Clock = systemClock,
    { prefix = 'lock', slotOfKey }: RoutingOptions = {},
  ) {
    this.#replyTimeouts = new ReplyTimeouts(clock, timeoutMs, this.#nextDeadline, this.#onDeadline);
    this.#clientState = new ClientState(this.#clientStateListener);
    this.#source = source;
    const { givenClient } = source;
    this.tracking = new KeyTracking(this.#clientState.health, givenClient !== undefined);
    this.#routing = new KeyRouting(this.#clientState.health, prefix, slotOfKey);
    if (givenClient) {
      const lifecycle = new GivenClientLifecycle(givenClient, this.#clientState, timeoutMs, clock);
      this.#lifecycle = lifecycle;
      lifecycle.addListeners();
    } else this.#lifecycle = new OwnClientLifecycle(source, this.#clientState, timeoutMs, clock);
  }

  get health(): ReportedHealth {
    return this.#clientState.health;
  }

  get keyPrefix(): string {
    return this.#source.givenClient?.options?.keyPrefix ?? '';
  }

  makeSubscriber(): Promise<RedisClient> {
    return this.#source.makeSubscriber?.() ?? this.#source.makeClient();
  }

  /** @throws Error whose message has no secrets */
  send<T>(leaseKey: string, request: RedisRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const onReplies = (replies: readonly unknown[]): void => resolve(request.read(replies));
      const pending = new PendingRequest(request, leaseKey, FIRST_SEND_MODE, this.#requestListener, onReplies, reject);
      if (request.caller) this.#waitingRequests.addAcquisition(pending);
      else this.#waitingRequests.addRenewalOrRelease(pending);
      this.#onEnqueued(pending);
    });
  }

  sendCommand(...command: RedisCommand): Promise<unknown> {
    return this.send('', { commands: [command], read: ([reply]) => reply });
  }

  trackKeys(onChange: (name: string | undefined) => void): void {
    this.tracking.start(onChange);
  }

  /** Whether more keys may be tracked. Tracking needs an early renewal, which would delay acquisitions in a burst. */
  get shouldTrackMoreKeys(): boolean {
    return this.tracking.isPossible && this.#waitingRequests.count < MAX_WAITING_REQUESTS_TO_TRACK;
  }

  async loadShards(): Promise<readonly [this]> {
    return [this];
  }

  /** Whether no request waits or is under way. */
  readonly isIdle = (): boolean => this.#requestsUnderWay.isEmpty && this.#waitingRequests.count === 0;

  startConnecting(): Promise<void> {
    return this.#lifecycle.startConnecting();
  }

  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  readonly #clientStateListener: ClientStateListener = {
    onUsable: () => {
      this.#resetSilence();
      this.#scheduleSend();
    },
    onUnusable: (error) => {
      this.#unusableSince = this.clock.now();
      if (error) this.#failWaiting(error);
      if (this.#waitingRequests.count > 0) this.#replyTimeouts.start();
    },
    onFirstSuccess: () => {
      const sendCommand = (...command: RedisCommand): Promise<unknown> => this.sendCommand(...command);
      this.#lifecycle.onFirstSuccess?.(sendCommand);
      void reportServerAdvice(sendCommand, this.health);
    },
  };

  readonly #requestListener: PendingRequestListener = {
    onCommandReply: (isSuccess) => {
      this.#resetSilence();
      this.#clientState.onReply(isSuccess);
    },
    onSettled: (pending) => this.#onSettled(pending),
    onErrorReply: (error) => this.#routing.onErrorReply(error, this.keyPrefix),
    tryReserveResend: () => {
      const isFirst = !this.#isResendReserved;
      this.#isResendReserved = true;
      return isFirst;
    },
    resend: ({ request, leaseKey, resolve, reject }, mode) => {
      const pending = new PendingRequest(request, leaseKey, mode, this.#requestListener, resolve, reject);
      this.#waitingRequests.addRenewalOrRelease(pending);
      this.#onEnqueued(pending);
    },
  };

  #onSettled(pending: PendingRequest): void {
    if (pending.mode.hasOwnCommand) this.#isResendReserved = false;
    if (pending.index < 0) return;
    this.#requestsUnderWay.remove(pending);
    if (this.#waitingRequests.count > 0) this.#scheduleSend();
  }

  #onEnqueued(pending: PendingRequest): void {
    // While the client is usable, `enqueuedAt` stays 0, which saves reading the clock. If the client then becomes
    // unusable, the wait counts from `#unusableSince`.
    if (!this.#clientState.isUsable) pending.enqueuedAt = this.clock.now();
    const canSend = this.#clientState.isUsable && this.#requestsUnderWay.hasCapacity;
    // Requests with a confirmation are not sent early. All of one iteration share one confirmation by the replicas:
    // after an early batch, the rest would wait until that batch is confirmed.
    if (canSend && this.#waitingRequests.hasFullBatch && !pending.request.confirmation) this.#sendWaiting();
    else this.#scheduleSend();
    this.#replyTimeouts.start();
  }

  #scheduleSend(): void {
    if (this.#isSendScheduled) return;
    this.#isSendScheduled = true;
    process.nextTick(this.#sendWaiting);
  }

  readonly #sendWaiting = (): void => {
    this.#isSendScheduled = false;
    if (this.#waitingRequests.count === 0 || this.#requestsUnderWay.hasUnconfirmed) return;
    if (this.#clientState.isUsable && this.#requestsUnderWay.isEmpty) {
      if (this.clock.now() - this.#silentSince > MAX_IDLE_MS) this.#lifecycle.testIdleClient();
      this.#resetSilence();
    }
    const { client } = this.#lifecycle;
    if (!client || !this.#clientState.isUsable) {
      const error = this.#lifecycle.ensureConnecting();
      if (error) this.#failWaiting(error);
      return;
    }
    const batch = new CommandBatch(client, this.tracking, this.#routing, this.#requestListener);
    const stream = this.#waitingRequests.count > 1 || this.tracking.isListening ? client.stream : undefined;
    stream?.cork();
    this.tracking.announceListener(client);
    this.#waitingRequests.moveTo(batch, this.#requestsUnderWay);
    batch.send();
    stream?.uncork();
    if (batch.couldShareMore && this.#routing.needsTest) void this.#routing.test(this.#sendRoutingTest);
  };

  readonly #sendRoutingTest = (commands: readonly RedisCommand[]): Promise<readonly unknown[]> =>
    this.send('', { commands, read: (replies) => replies });

  #failWaiting(error: Error, latestDeadline = Infinity): void {
    this.#waitingRequests.failOverdue(error, (pending) => this.#waitDeadlineOf(pending) <= latestDeadline);
  }

  #resetSilence(): void {
    this.#silentSince = this.clock.now();
    this.#bytesReadAtSilenceStart = this.#lifecycle.client?.stream?.bytesRead;
  }

  #waitDeadlineOf({ enqueuedAt }: PendingRequest): number {
    return Math.max(enqueuedAt, this.#unusableSince) + this.timeoutMs;
  }

  readonly #nextDeadline = (): number => {
    const silenceDeadline = this.#requestsUnderWay.isEmpty ? Infinity : this.#silentSince + this.timeoutMs;
    if (this.#clientState.isUsable) return silenceDeadline;
    return Math.min(
      silenceDeadline,
      ...this.#waitingRequests.oldestOfEachQueue.map((pending) => this.#waitDeadlineOf(pending)),
    );
  };

  readonly #onDeadline = (): void => {
    const now = this.clock.now();
    if (!this.#requestsUnderWay.isEmpty && this.#silentSince + this.timeoutMs <= now) {
      // New bytes are a sign of life: a part of a long reply, or a reply to another user of the application's client.
      if (this.#lifecycle.client?.stream?.bytesRead !== this.#bytesReadAtSilenceStart) this.#resetSilence();
      else this.#onSilence();
    }
    if (this.#clientState.isUsable || this.#nextDeadline() > now) return;
    const error = this.#lifecycle.createNoAnswerError();
    this.#failWaiting(new NotSentError(error.message), now);
    this.#lifecycle.onConnectTimeout(error);
  };

  #onSilence(): void {
    const error = this.#lifecycle.createNoAnswerError();
    this.#requestsUnderWay.failAll(error);
    this.#lifecycle.onSilence(error);
  }
}
