import { isErrorReply, isReadOnlyError, isUnknownScriptError, toLoggableError } from '../error.js';
import type { RedisScript, ScriptCall } from '../scripts/redis-script.js';
import { asList } from '../scripts/redis-values.js';
import type { KeyTracking } from './key-tracking.js';
import type { RedisArgument, RedisClient, RedisCommand } from './redis-client.js';
import type { RedisRequest } from './redis-servers.js';

/** The sender of requests, which is told of their replies. */
export interface PendingRequestListener {
  /** Called when the server has replied. `isSuccess`: the reply was no error. */
  onReply(isSuccess: boolean): void;
  /** Called once when the request was answered, has failed, or is to be sent again. */
  onSettled(pending: PendingRequest): void;
  /** Called when the server has answered with an error, before the caller is told. */
  onErrorReply(error: Error): void;
  /**
   * Returns whether the caller should send its request again in a command of its own. The client then sees the error
   * READONLY, which the server has given to one call of a shared command. One request at a time does that.
   */
  claimReadOnlyError(): boolean;
  /** Sends the request once more. Its first command was not carried out. */
  resend(pending: PendingRequest, mode: SendMode): void;
}

/** The way in which a request is sent. */
export interface SendMode {
  /** Whether scripts are sent by their source, because the server does not know their SHA-1. */
  readonly isBySource: boolean;
  /** Whether the request shares no command with other requests. */
  readonly isAlone: boolean;
}

/** A request between the call that makes it and its answer. */
export class PendingRequest {
  /** Index among the requests under way; negative while the request waits. */
  index = -1;
  /** Time when the request began to wait for a usable client; 0 when the client was usable. */
  enqueuedAt = 0;
  /** Number of commands, the confirmation included. */
  readonly size: number;
  readonly #replies: unknown[];
  #missingReplies: number;

  constructor(
    readonly request: Omit<RedisRequest<unknown>, 'read'>,
    /** Slot of the request's key. Calls with keys of different slots must not share a command. */
    readonly slot: number,
    readonly mode: SendMode,
    private readonly listener: PendingRequestListener,
    /** Takes the replies. May throw when they are not valid. */
    readonly resolve: (replies: readonly unknown[]) => void,
    /** Takes an error that may be logged. */
    readonly reject: (error: unknown) => void,
  ) {
    this.size = request.commands.length + (request.confirmation ? 1 : 0);
    this.#missingReplies = this.size;
    this.#replies = [...request.commands];
  }

  /**
   * Takes the next reply. Replies come in the order of the commands.
   * @param isShared whether the command also had calls of other requests
   */
  onReply(reply: unknown, isShared: boolean): void {
    if (this.#missingReplies === 0) return;
    if (isErrorReply(reply)) {
      const error = toLoggableError(reply);
      this.listener.onErrorReply(error);
      // The client sees only an error that answers a whole command, and may reconnect because of READONLY.
      const shouldShowClient = isShared && isReadOnlyError(error) && this.listener.claimReadOnlyError();
      return shouldShowClient ? this.#resend({ ...this.mode, isAlone: true }) : this.fail(error);
    }
    this.#replies[this.size - this.#missingReplies] = reply;
    this.#missingReplies -= 1;
    if (this.#missingReplies > 0) return;
    this.listener.onSettled(this);
    try {
      this.resolve(this.#replies);
    } catch (error) {
      this.reject(error);
    }
  }

  /** Handles the failure of a command that several requests share. The error may be about another one of them. */
  onSharedCommandError(error: Error): void {
    if (isUnknownScriptError(error) || isReadOnlyError(error)) this.fail(error);
    else this.#resend({ ...this.mode, isAlone: true });
  }

  /** Fails, or sends a script by its source when the server does not know its SHA-1. */
  fail(error: Error): void {
    if (this.#missingReplies === 0) return;
    if (isUnknownScriptError(error) && !this.mode.isBySource) return this.#resend({ ...this.mode, isBySource: true });
    this.#settle();
    this.request.onFailure?.(error);
    this.reject(error);
  }

  #resend(mode: SendMode): void {
    if (this.#missingReplies === 0) return;
    this.#settle();
    this.listener.resend(this, mode);
  }

  #settle(): void {
    this.#missingReplies = 0;
    this.listener.onSettled(this);
  }
}

/** One command of a batch, and the requests that it answers. */
interface BatchCommand {
  readonly command: RedisCommand | ScriptCall;
  /** Calls of one script that share the command; empty when it is no script. */
  readonly calls: ScriptCall[];
  readonly requests: PendingRequest[];
}

/**
 * The commands of one event loop iteration, for one write to the socket. Calls of one script share a command, because a
 * command costs a client and a server more than a call does. The pipelines of ioredis save less, at several times the
 * cost.
 */
export class CommandBatch {
  /** Commands in the order of their first requests: an acquisition must not overtake the release of its key. */
  readonly #commands: BatchCommand[] = [];
  /** Index of the first command that a call may share. In an earlier command the call would overtake another request. */
  #firstShareable = 0;
  readonly #unconfirmed: PendingRequest[] = [];

  constructor(
    private readonly client: RedisClient,
    private readonly tracking: KeyTracking,
    private readonly listener: PendingRequestListener,
  ) {}

  add(pending: PendingRequest): void {
    const { commands, confirmation } = pending.request;
    const [first, second] = commands;
    // A request of several commands relies on their order: none of them is shared.
    const soleCall = first && !second && 'script' in first ? first : undefined;
    if (!soleCall || pending.mode.isAlone || !this.#shareCommand(soleCall, pending)) {
      for (const command of commands)
        this.#commands.push({ command, calls: 'script' in command ? [command] : [], requests: [pending] });
    }
    if (!soleCall) this.#firstShareable = this.#commands.length;
    if (confirmation) this.#unconfirmed.push(pending);
  }

  /** Sends all commands, and after them one confirmation for all requests that need it. */
  send(): void {
    for (const command of this.#commands) this.#sendCommand(command);
    const confirmation = this.#unconfirmed[0]?.request.confirmation;
    if (confirmation) this.#sendCommand({ command: confirmation, calls: [], requests: this.#unconfirmed });
  }

  /** Adds the call to an earlier command of the same script and mode. Returns whether there was one. */
  #shareCommand(call: ScriptCall, pending: PendingRequest): boolean {
    for (let i = this.#commands.length - 1; i >= this.#firstShareable; i -= 1) {
      const { calls = [], requests = [] } = this.#commands[i] ?? {};
      const [first] = requests;
      const canShare =
        calls[0]?.script === call.script &&
        first?.mode.isBySource === pending.mode.isBySource &&
        !first.mode.isAlone &&
        first.slot === pending.slot;
      if (canShare && calls.length < call.script.maxCallsPerCommand) {
        calls.push(call);
        requests.push(pending);
        return true;
      }
    }
    return false;
  }

  #sendCommand({ command, calls, requests }: BatchCommand): void {
    const isShared = calls.length > 1;
    const onFailure = (error: unknown): void => {
      const loggableError = toLoggableError(error);
      if (isErrorReply(error)) {
        this.listener.onReply(false);
        this.listener.onErrorReply(loggableError);
      }
      for (const pending of requests) {
        if (isShared && isErrorReply(error)) pending.onSharedCommandError(loggableError);
        else pending.fail(loggableError);
      }
    };
    const onAnswer = (reply: unknown): void => {
      this.listener.onReply(!(Array.isArray(reply) && reply.some(isErrorReply)));
      try {
        const replies = isShared ? asList(reply) : undefined;
        for (let i = 0; i < requests.length; i += 1) requests[i]?.onReply(replies ? replies[i] : reply, isShared);
      } catch (error) {
        onFailure(error);
      }
    };
    try {
      // ASKING is for the very next command: one between it and the script would undo it.
      const isSole = requests[0]?.request.commands.length === 1;
      if (isSole && 'script' in command && command.script.isTracked) this.tracking.trackNextCommand(this.client);
      const rawCommand =
        'script' in command ? toEvalCommand(command.script, calls, requests[0]?.mode.isBySource) : command;
      this.client.call(...rawCommand).then(onAnswer, onFailure);
    } catch (error) {
      onFailure(error);
    }
  }
}

/** Returns one command for calls of one script: first the keys of all calls, then their arguments. */
function toEvalCommand(script: RedisScript, calls: readonly ScriptCall[], isBySource = false): RedisCommand {
  const [name, text] = isBySource ? ['EVAL', script.source] : ['EVALSHA', script.sha1];
  const command: [string, ...RedisArgument[]] = [name, text, calls.length * script.keys];
  for (const { keys } of calls) command.push(...keys);
  for (const { args } of calls) command.push(...args);
  return command;
}
