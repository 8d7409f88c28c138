import type { Account, CommandLine } from './account.js';

/** How a server is started on this machine, in a directory of its own, with nothing in it and for everybody on this machine. */
export interface ServerRecipe {
  readonly name: string;
  /** Runs it where we are root; without one, it may be root. */
  readonly account?: Account;
  /** Makes the data directory, where the server does not do so itself. */
  readonly initialise?: (data: string) => CommandLine;
  /** A configuration file in the directory. */
  readonly settings?: { readonly file: string; readonly text: (directory: string, port: number) => string };
  /** Its data is in `data` of the directory. */
  readonly serve: (directory: string, port: number) => CommandLine;
  /** The text that it writes to its output once it serves. */
  readonly ready: string;
  /** The text that it writes when only a part of it is there. */
  readonly missing?: string;
  /** Ends it quickly. */
  readonly stopSignal: NodeJS.Signals;
  readonly address: (port: number) => string;
  /** How to install it, for people who do not have it. */
  readonly install: string;
}
