import { Startable } from './startable.js';

interface Closing {
  close(withinMs?: number): Promise<unknown>;
}

/** A server, or several, and what each test opens on them. */
export abstract class World extends Startable {
  protected readonly opened: Closing[] = [];

  /** Ends with the test. */
  closing<Opened extends Closing>(opened: Opened): Opened {
    this.opened.push(opened);
    return opened;
  }

  /** The last that was opened is closed first. */
  override async endTest(): Promise<void> {
    for (const opened of this.opened.splice(0).toReversed()) await opened.close();
  }
}
