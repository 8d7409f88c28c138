import { replaceNumbers } from '../contract/key.js';
import { sharedState } from './shared-state.js';

/** Maximum number of messages that are remembered. */
const MAX_MESSAGES = 1_000;

const emittedMessages = sharedState('warnings', () => new Set<string>());

/** Emits a process warning, once for all messages that differ in numbers only. After many different ones, emits none. */
export function warnOnce(message: string): void {
  const template = replaceNumbers(message);
  if (emittedMessages.has(template) || emittedMessages.size >= MAX_MESSAGES) return;
  emittedMessages.add(template);
  process.emitWarning(message, 'LockWarning');
}
