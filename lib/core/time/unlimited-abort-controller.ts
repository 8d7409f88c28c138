import { setMaxListeners } from 'node:events';

/** Returns a controller whose signal takes any number of listeners. For other signals, Node warns of more than ten. */
export function createUnlimitedAbortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
