import { ConsoleLogger } from '@nestjs/common';

/** A busy machine takes long to read the options of a module, and Nest 10 warns of that. */
const OF_A_BUSY_MACHINE = /to serialize, this may be caused by larger objects/u;

/** Keeps what an application is warned of, with the level before it. */
export class KeptLog extends ConsoleLogger {
  readonly lines: string[] = [];
  override log = (): void => undefined;
  override debug = (message: unknown): void => this.#keep('debug', message);
  override warn = (message: unknown): void => this.#keep('warn', message);
  override error = (message: unknown): void => this.#keep('error', message);

  #keep(level: string, message: unknown): void {
    const line = `${level} ${String(message)}`;
    if (!OF_A_BUSY_MACHINE.test(line)) this.lines.push(line);
  }
}
