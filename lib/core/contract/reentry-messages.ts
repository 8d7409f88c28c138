import { quote } from './errors.js';

const CURES =
  'A call that is nested in that work: give reentrant: true to both, or take the lock once, further out. ' +
  'A job of its own, of a queue, an event, a timer or a batch, that only happens to start there: start it by ' +
  'runDetached(() => …), and do not await it there';

/** Returns the message for a call that starts inside a lock on its key. Not both allow re-entry. */
export function describeReentry(key: string, isAsked: boolean, isAllowed: boolean): string {
  const which = isAsked
    ? 'that lock does not allow re-entry'
    : isAllowed
      ? 'this call does not ask for re-entry'
      : 'neither of the two has reentrant: true';
  return `${quote(key)} is held by the work in which this call starts, and ${which}. ${CURES}`;
}

/** Returns the message for a call that would re-enter a lock, and wants more of the key than that lock has. */
export function describeUpgrade(key: string, has: string, asks: string): string {
  return (
    `this call tree has ${quote(key)} ${has} and asks for it ${asks}: two that do so would wait for each other. ` +
    'Release it, take it for all that the work needs, and look again at what was read'
  );
}

/** Returns the message for a call that waits for the lock around it, whose first caller has left. */
export function describeWaitForItself(key: string, waitMs: number): string {
  const wait = waitMs === Infinity ? 'would wait for itself for ever' : `waited for itself, for ${waitMs} ms`;
  return (
    `${quote(key)} is held by calls that were started under the lock and were not awaited there. This call is one of ` +
    `theirs, and ${wait}. Await what the work starts, or start it by runDetached(() => …)`
  );
}

/** Returns the warning for a lock whose first caller leaves while calls that have re-entered it go on. */
export function describeUnawaitedReentry(key: string): string {
  return (
    `the work under ${quote(key)} has ended while calls that it started, with reentrant: true, are still inside. The key ` +
    'stays closed until they leave. Await them, or start them by runDetached(() => …), so that they wait for their turn'
  );
}
