import { type Clock, NotSentError, ReplyTimeouts, type ReportedHealth, systemClock } from '../../../core/index.js';
import { isCrossSlotError } from '../error.js';
import type { ClientKeeper } from './client-keeper.js';
import { ClientState, type ClientUser } from './client-state.js';
import { CommandBatch, PendingRequest, type PendingRequestListener, type SendMode } from './command-batch.js';
import { GivenClientKeeper } from './given-client-keeper.js';
import { slotOf } from './key-slot.js';
import { KeyTracking } from './key-tracking.js';
import { OwnClientKeeper } from './own-client-keeper.js';
import type { ClientSource, RedisClient, RedisCommand } from './redis-client.js';
import type { RedisRequest, RedisServers } from './redis-servers.js';
import { RequestsUnderWay } from './requests-under-way.js';
import { adviseOnServer, SLOTS_ADVICE } from './server-advice.js';
import { WaitingRequests } from './waiting-requests.js';

const FIRST_SEND_MODE: SendMode = { isBySource: false, isAlone: false };
/** Idle time after which a connection is tested before it is used: firewalls drop idle connections without notice. */
const MAX_IDLE_MS = 30_000;

/** Number of waiting requests from which on no lease is renewed early for its key to be tracked. */
const MAX_WAITING_TO_TRACK = 500;

/**
 * A connection to one server. Every command fails within a bounded time, whatever the settings of the client and the
 * state of the server.
 *
 * Requests are sent in the order of the calls, and those of one event loop iteration in one write. A bounded number of
 * commands is under way at a time. The other requests wait in two queues: acquisitions wait until all renewals and
 * releases have been sent. A request that fails while it waits is never sent. A request that was sent may be carried
 * out late, even after its connection was replaced.
 *
 * The server counts as silent when no byte has come from it for the time-out. A slow reply among others is no silence.
 */
export class RedisConnection implements RedisServers {
  readonly #source: ClientSource;
  readonly #clients: ClientKeeper;
  readonly #clientState: ClientState;
  readonly #replyTimeouts: ReplyTimeouts;
  readonly #waiting = new WaitingRequests();
  readonly #underWay = new RequestsUnderWay();
  #isSendScheduled = false;
  /** Whether a request is under way that shows the client the error READONLY: one of a thousand requests is enough. */
  #isReadOnlyErrorShown = false;
  #unusableSince = 0;
  /** Time of the last reply, or the last time when no reply was expected. */
  #heardAt = 0;
  /** Number of bytes that the client had read at `#heardAt`. */
  #bytesReadThen: number | undefined;
  readonly tracking: KeyTracking;

  constructor(
    source: ClientSource,
    readonly timeoutMs: number,
    private readonly clock: Clock = systemClock,
    /** Slot of a key on a server that refuses a command with keys of several slots; `undefined` for other servers. */
    private slotOfKey?: (leaseKey: string) => number,
  ) {
    this.#replyTimeouts = new ReplyTimeouts(clock, timeoutMs, this.#nextDueAt, this.#onOverdue);
    this.#clientState = new ClientState(this.#clientUser);
    this.#source = source;
    const { givenClient } = source;
    this.tracking = new KeyTracking(this.#clientState.health, givenClient !== undefined);
    if (givenClient) {
      const keeper = new GivenClientKeeper(givenClient, this.#clientState, timeoutMs, clock);
      this.#clients = keeper;
      keeper.attach();
    } else this.#clients = new OwnClientKeeper(source, this.#clientState, timeoutMs, clock);
  }

  get health(): ReportedHealth {
    return this.#clientState.health;
  }

  get keyPrefix(): string {
    return this.#source.givenClient?.options?.keyPrefix ?? '';
  }

  /** Makes the client for a subscription, which is not connected yet. */
  makeSubscriber(): Promise<RedisClient> {
    return this.#source.makeSubscriber?.() ?? this.#source.makeClient();
  }

  /** Rejects with an error that may be logged. */
  send<T>(leaseKey: string, request: RedisRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const slot = this.slotOfKey?.(leaseKey) ?? 0;
      const onReplies = (replies: readonly unknown[]): void => resolve(request.read(replies));
      const pending = new PendingRequest(request, slot, FIRST_SEND_MODE, this.#listener, onReplies, reject);
      if (request.asker) this.#waiting.addAcquisition(pending);
      else this.#waiting.addRenewalOrRelease(pending);
      this.#onEnqueued(pending);
    });
  }

  sendCommand(...command: RedisCommand): Promise<unknown> {
    return this.send('', { commands: [command], read: ([reply]) => reply });
  }

  trackKeys(onChange: (name: string | undefined) => void): void {
    this.tracking.start(onChange);
  }

  /** During a burst keys are tracked later: renewals would keep the acquisitions waiting that were made already. */
  get canTrackKeys(): boolean {
    return this.tracking.isPossible && this.#waiting.count < MAX_WAITING_TO_TRACK;
  }

  async loadShards(): Promise<readonly [this]> {
    return [this];
  }

  startConnecting(): Promise<void> {
    return this.#clients.startConnecting();
  }

  close(): Promise<void> {
    return this.#clients.close();
  }

  readonly #clientUser: ClientUser = {
    onUsable: () => {
      this.#noteHeard();
      this.#scheduleSend();
    },
    onUnusable: (error) => {
      this.#unusableSince = this.clock.now();
      if (error) this.#failWaiting(error);
      if (this.#waiting.count > 0) this.#replyTimeouts.start();
    },
    onFirstSuccess: () => {
      const sendCommand = (...command: RedisCommand): Promise<unknown> => this.sendCommand(...command);
      this.#clients.onFirstReply?.(sendCommand);
      void adviseOnServer(sendCommand, this.health);
    },
  };

  readonly #listener: PendingRequestListener = {
    onReply: (isSuccess) => {
      this.#noteHeard();
      this.#clientState.onReply(isSuccess);
    },
    onSettled: (pending) => this.#onSettled(pending),
    onErrorReply: (error) => this.#onErrorReply(error),
    claimReadOnlyError: () => {
      const isFirst = !this.#isReadOnlyErrorShown;
      this.#isReadOnlyErrorShown = true;
      return isFirst;
    },
    resend: ({ request, slot, resolve, reject }, mode) => {
      const pending = new PendingRequest(request, slot, mode, this.#listener, resolve, reject);
      this.#waiting.addRenewalOrRelease(pending);
      this.#onEnqueued(pending);
    },
  };

  #onSettled(pending: PendingRequest): void {
    if (pending.mode.isAlone) this.#isReadOnlyErrorShown = false;
    if (pending.index < 0) return;
    this.#underWay.remove(pending);
    if (this.#waiting.count > 0) this.#scheduleSend();
  }

  #onErrorReply(error: Error): void {
    if (!isCrossSlotError(error) || this.slotOfKey) return;
    this.slotOfKey = (leaseKey) => slotOf(this.keyPrefix + leaseKey);
    this.health.setAdvice('slots', SLOTS_ADVICE);
  }

  #onEnqueued(pending: PendingRequest): void {
    // Without this time, a request counts as waiting since the client was last unusable.
    if (!this.#clientState.isUsable) pending.enqueuedAt = this.clock.now();
    this.#scheduleSend();
    this.#replyTimeouts.start();
  }

  #scheduleSend(): void {
    if (this.#isSendScheduled) return;
    this.#isSendScheduled = true;
    process.nextTick(this.#sendWaiting);
  }

  readonly #sendWaiting = (): void => {
    this.#isSendScheduled = false;
    if (this.#waiting.count === 0 || this.#underWay.hasUnconfirmed) return;
    if (this.#clientState.isUsable && this.#underWay.isEmpty) {
      if (this.clock.now() - this.#heardAt > MAX_IDLE_MS) this.#clients.testIdleClient();
      this.#noteHeard();
    }
    const { client } = this.#clients;
    if (!client || !this.#clientState.isUsable) {
      const error = this.#clients.ensureConnecting();
      if (error) this.#failWaiting(error);
      return;
    }
    const batch = new CommandBatch(client, this.tracking, this.#listener);
    const stream = this.#waiting.count > 1 || this.tracking.isListening ? client.stream : undefined;
    stream?.cork();
    this.tracking.prepare(client);
    this.#waiting.moveTo(batch, this.#underWay);
    batch.send();
    stream?.uncork();
  };

  /** Fails the requests whose time to wait for a client ends at `dueBy` at the latest. */
  #failWaiting(error: Error, dueBy = Infinity): void {
    this.#waiting.failDue(error, (pending) => this.#waitEndsAt(pending) <= dueBy);
  }

  #noteHeard(): void {
    this.#heardAt = this.clock.now();
    this.#bytesReadThen = this.#clients.client?.stream?.bytesRead;
  }

  #waitEndsAt({ enqueuedAt }: PendingRequest): number {
    return Math.max(enqueuedAt, this.#unusableSince) + this.timeoutMs;
  }

  readonly #nextDueAt = (): number => {
    const silentAt = this.#underWay.isEmpty ? Infinity : this.#heardAt + this.timeoutMs;
    if (this.#clientState.isUsable) return silentAt;
    return Math.min(silentAt, ...this.#waiting.oldest.map((pending) => this.#waitEndsAt(pending)));
  };

  readonly #onOverdue = (): void => {
    const now = this.clock.now();
    if (!this.#underWay.isEmpty && this.#heardAt + this.timeoutMs <= now) {
      // Bytes may be replies to other users of a given client, or a part of a long reply.
      if (this.#clients.client?.stream?.bytesRead !== this.#bytesReadThen) this.#noteHeard();
      else this.#onSilence();
    }
    if (this.#clientState.isUsable || this.#nextDueAt() > now) return;
    const error = this.#clients.noAnswerError();
    this.#failWaiting(new NotSentError(error.message), now);
    this.#clients.onConnectTimeout(error);
  };

  #onSilence(): void {
    const error = this.#clients.noAnswerError();
    this.#underWay.failAll(error);
    this.#clients.onSilence(error);
  }
}
