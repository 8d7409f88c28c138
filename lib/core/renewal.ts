import type { RenewalListener } from './lock-backend.js';

/** Calls one method of the listener, once the answer is there. */
export function tell(listener: RenewalListener, answer: Promise<boolean>): void {
  answer.then(
    (ours) => listener.onAnswer(ours),
    (error: unknown) => listener.onFailure(error),
  );
}
