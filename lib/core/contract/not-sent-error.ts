/** A request was not sent, and never will be: nothing can stay behind on the server because of it. */
export class NotSentError extends Error {}
