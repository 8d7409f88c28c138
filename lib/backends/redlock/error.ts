import type { QuorumCall } from './quorum-call.js';
import type { RedlockNode } from './redlock-node.js';

/** There is no quorum: an error for each node that failed or refused. The message names the others, too. */
export function quorumError(
  { nodes, quorum, answers, failures }: QuorumCall<RedlockNode, unknown>,
  refusals: ReadonlyMap<RedlockNode, Error> = new Map(),
): AggregateError {
  const errors: Error[] = [];
  const others: string[] = [];
  for (const node of nodes) {
    const error = failures.get(node) ?? refusals.get(node) ?? (answers.has(node) ? undefined : downError(node));
    if (error) errors.push(error);
    else others.push(node.name);
  }
  return new AggregateError(
    errors,
    `no quorum of ${quorum} among ${nodes.length} nodes: ${errors.map(({ message }) => message).join('; ')}` +
      (others.length > 0 ? `; nothing is known against ${others.join(' and ')}` : ''),
  );
}

/** A node that has not answered yet is at fault only if it is known to be down. */
function downError({ name, down, health }: RedlockNode): Error | undefined {
  return down ? new Error(`${name}: ${health.current.detail ?? 'is down'}`) : undefined;
}
