import { isErrorReply, isFormerMasterError, isUnknownScriptError, toLoggableError } from '../error.js';
import type { RedisScript, ScriptCall } from '../scripts/redis-script.js';
import { asList } from '../scripts/redis-values.js';
import type { KeyRouting } from './key-routing.js';
import type { KeyTracking } from './key-tracking.js';
import type { RedisArgument, RedisClient, RedisCommand } from './redis-client.js';
import type { RedisRequest } from './redis-servers.js';

export interface PendingRequestListener {
  /** Called for each reply to a command. @param isSuccess whether no part of the reply is an error */
  onCommandReply(isSuccess: boolean): void;
  /** Called once for each request: when it was answered, has failed, or is to be sent again. */
  onSettled(pending: PendingRequest): void;
  onErrorReply(error: Error): void;
  /**
   * Returns whether to send a request again, alone in its command. Called when one call of a shared command got the
   * error of a former master. After that it returns `false` until a request that is alone in its command has settled.
   */
  tryReserveResend(): boolean;
  /** Sends a request again. Called only when the server has carried out no command of the request except ASKING. */
  resend(pending: PendingRequest, mode: SendMode): void;
}

export interface SendMode {
  /** Whether scripts are sent by their source, because the server does not know their SHA-1. */
  readonly sendsSource: boolean;
  /** Whether the request is sent alone in its command, and shares it with no other request. */
  readonly hasOwnCommand: boolean;
}

/** A request from its creation until it succeeds, fails or is sent again. */
export class PendingRequest {
  /** Index in the list of `RequestsUnderWay`; negative while the request waits. */
  index = -1;
  /** Time when the request began to wait for a usable client; 0 when the client was usable. */
  enqueuedAt = 0;
  readonly commandCount: number;
  /** Replies in the order of the commands. Until a reply arrives, its place has some other value. */
  readonly #replies: unknown[];
  #missingReplyCount: number;

  constructor(
    readonly request: Omit<RedisRequest<unknown>, 'read'>,
    readonly leaseKey: string,
    readonly mode: SendMode,
    private readonly listener: PendingRequestListener,
    readonly resolve: (replies: readonly unknown[]) => void,
    readonly reject: (error: unknown) => void,
  ) {
    this.commandCount = request.commands.length + (request.confirmation ? 1 : 0);
    this.#missingReplyCount = this.commandCount;
    this.#replies = request.commands.length === 1 ? [undefined] : [...request.commands];
  }

  onReply(reply: unknown, isCommandShared: boolean): void {
    if (this.#missingReplyCount === 0) return this.request.onLateReply?.();
    if (isErrorReply(reply)) {
      const error = toLoggableError(reply);
      this.listener.onErrorReply(error);
      // The client does not see the error of one call in a shared command. If the repeated request, alone in its
      // command, gets the error again, the client sees that error and may reconnect.
      const shouldResend = isCommandShared && isFormerMasterError(error) && this.listener.tryReserveResend();
      return shouldResend ? this.#resend({ ...this.mode, hasOwnCommand: true }) : this.fail(error);
    }
    this.#replies[this.commandCount - this.#missingReplyCount] = reply;
    this.#missingReplyCount -= 1;
    if (this.#missingReplyCount > 0) return;
    this.listener.onSettled(this);
    try {
      this.resolve(this.#replies);
    } catch (error) {
      this.reject(error);
    }
  }

  /** Handles an error reply that any of the requests in a shared command may have caused. */
  onSharedCommandError(error: Error): void {
    if (isUnknownScriptError(error) || isFormerMasterError(error)) this.fail(error);
    else this.#resend({ ...this.mode, hasOwnCommand: true });
  }

  /** Fails, unless the server only lacks the script: then sends the request again, with the source of the script. */
  fail(error: Error): void {
    if (this.#missingReplyCount === 0) return;
    if (isUnknownScriptError(error) && !this.mode.sendsSource) return this.#resend({ ...this.mode, sendsSource: true });
    this.#settle();
    this.request.onFailure?.(error);
    this.reject(error);
  }

  #resend(mode: SendMode): void {
    if (this.#missingReplyCount === 0) return;
    this.#settle();
    this.listener.resend(this, mode);
  }

  #settle(): void {
    this.#missingReplyCount = 0;
    this.listener.onSettled(this);
  }
}

interface BatchCommand {
  /** Only keys of one group may share a command: see `KeyRouting.getKeyGroup`. */
  readonly keyGroup: number | string;
  readonly command: RedisCommand | ScriptCall;
  /** Calls of one script that share the command; empty for a command that runs no script. */
  readonly calls: ScriptCall[];
  readonly requests: PendingRequest[];
}

/**
 * Commands of one event loop iteration, for one write to the socket. Calls of one script share a command. One command
 * with several calls costs client and server less than a pipeline of as many commands.
 */
export class CommandBatch {
  /** Commands in the order of their first requests: an acquisition must not overtake the release of its key. */
  readonly #commands: BatchCommand[] = [];
  /**
   * Index of the first command that further calls may share. A call that joined an earlier command would overtake
   * another request.
   */
  #firstShareableIndex = 0;
  readonly #requestsToConfirm: PendingRequest[] = [];
  /** Whether calls were kept apart only because of their keys. */
  couldShareMore = false;

  constructor(
    private readonly client: RedisClient,
    private readonly tracking: KeyTracking,
    private readonly routing: KeyRouting,
    private readonly listener: PendingRequestListener,
  ) {}

  add(pending: PendingRequest): void {
    const { commands, confirmation } = pending.request;
    const [firstCommand, secondCommand] = commands;
    // A request of several commands relies on their order: none of them is shared.
    const singleCall = firstCommand && !secondCommand && 'script' in firstCommand ? firstCommand : undefined;
    const keyGroup = this.routing.getKeyGroup(pending.leaseKey);
    if (!singleCall || pending.mode.hasOwnCommand || !this.#tryShareCommand(singleCall, keyGroup, pending)) {
      for (const command of commands)
        this.#commands.push({ keyGroup, command, calls: 'script' in command ? [command] : [], requests: [pending] });
    }
    if (!singleCall) this.#firstShareableIndex = this.#commands.length;
    if (confirmation) this.#requestsToConfirm.push(pending);
  }

  send(): void {
    for (const command of this.#commands) this.#sendCommand(command);
    const confirmation = this.#requestsToConfirm[0]?.request.confirmation;
    if (confirmation)
      this.#sendCommand({ keyGroup: '', command: confirmation, calls: [], requests: this.#requestsToConfirm });
  }

  #tryShareCommand(call: ScriptCall, keyGroupOfCall: number | string, pending: PendingRequest): boolean {
    for (let i = this.#commands.length - 1; i >= this.#firstShareableIndex; i -= 1) {
      const { keyGroup, calls = [], requests = [] } = this.#commands[i] ?? {};
      const [firstRequest] = requests;
      const canShare =
        calls[0]?.script === call.script &&
        firstRequest?.mode.sendsSource === pending.mode.sendsSource &&
        !firstRequest.mode.hasOwnCommand;
      if (canShare && keyGroup !== keyGroupOfCall) this.couldShareMore = true;
      else if (canShare && calls.length < call.script.maxCallsPerCommand) {
        calls.push(call);
        requests.push(pending);
        return true;
      }
    }
    return false;
  }

  #sendCommand({ command, calls, requests }: BatchCommand): void {
    const isCommandShared = calls.length > 1;
    const onFailure = (error: unknown): void => {
      const loggableError = toLoggableError(error);
      if (isErrorReply(error)) {
        this.listener.onCommandReply(false);
        this.listener.onErrorReply(loggableError);
      }
      for (const pending of requests) {
        if (isCommandShared && isErrorReply(error)) pending.onSharedCommandError(loggableError);
        else pending.fail(loggableError);
      }
    };
    const onCommandReply = (reply: unknown): void => {
      this.listener.onCommandReply(!(Array.isArray(reply) && reply.some(isErrorReply)));
      try {
        if (reply === 'QUEUED')
          throw new Error(
            'the application has begun a MULTI on the given client: give the locks a client of their own',
          );
        const replies = isCommandShared ? asList(reply) : undefined;
        for (let i = 0; i < requests.length; i += 1)
          requests[i]?.onReply(replies ? replies[i] : reply, isCommandShared);
      } catch (error) {
        onFailure(error);
      }
    };
    try {
      // In a request of several commands, ASKING may precede the script. ASKING holds for one command only.
      // `trackNextCommand` would make that command `CLIENT CACHING`.
      const isOnlyCommand = requests[0]?.request.commands.length === 1;
      if (isOnlyCommand && 'script' in command && command.script.isTracked) this.tracking.trackNextCommand(this.client);
      const rawCommand =
        'script' in command ? toEvalCommand(command.script, calls, requests[0]?.mode.sendsSource) : command;
      this.client.call(...rawCommand).then(onCommandReply, onFailure);
    } catch (error) {
      onFailure(error);
    }
  }
}

function toEvalCommand(script: RedisScript, calls: readonly ScriptCall[], sendsSource = false): RedisCommand {
  const [name, sourceOrSha1] = sendsSource ? ['EVAL', script.source] : ['EVALSHA', script.sha1];
  const command: [string, ...RedisArgument[]] = [name, sourceOrSha1, calls.length * script.keyCount];
  for (const { keys } of calls) command.push(...keys);
  for (const { args } of calls) command.push(...args);
  return command;
}
