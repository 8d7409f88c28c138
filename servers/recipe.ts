import type { Account, CommandLine } from './account.js';

/** Recipe to start an empty server in a directory of its own. Every process of this machine may connect to it. */
export interface ServerRecipe {
  readonly name: string;
  /** Account of the server where the current user is root. A server without one runs as root. */
  readonly account?: Account;
  /** Returns the command that creates the data directory, where the server does not create it itself. */
  readonly initialise?: (data: string) => CommandLine;
  /** Configuration file in the directory. */
  readonly settings?: { readonly file: string; readonly text: (directory: string, port: number) => string };
  /** Returns the command that runs the server. Its data is in `data` of the directory. */
  readonly serve: (directory: string, port: number) => CommandLine;
  /** Text that the server prints when it accepts clients. */
  readonly ready: string;
  /** Text that the server prints when it is installed in part only. */
  readonly missing?: string;
  /** Signal that ends the server quickly. */
  readonly stopSignal: NodeJS.Signals;
  readonly address: (port: number) => string;
  /** Hint for users on how to install the server. */
  readonly install: string;
}
