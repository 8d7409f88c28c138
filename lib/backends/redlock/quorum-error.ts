import type { Poll } from './poll.js';
import type { RedlockNode } from './redlock-node.js';

/** Why there is no quorum: an error for each node that is of no use, and in the message the others too. */
export function quorumError(
  { nodes, quorum, answers, failures }: Poll<RedlockNode, unknown>,
  refusals: ReadonlyMap<RedlockNode, Error> = new Map(),
): AggregateError {
  const errors: Error[] = [];
  const usable: string[] = [];
  for (const node of nodes) {
    const problem = failures.get(node) ?? refusals.get(node);
    if (problem) errors.push(problem);
    else if (answers.has(node)) usable.push(node.name);
    else errors.push(new Error(`${node.name}: ${node.health.current.detail ?? 'no answer yet'}`));
  }
  return new AggregateError(
    errors,
    `no quorum of ${quorum} among ${nodes.length} nodes: ${errors.map(({ message }) => message).join('; ')}` +
      (usable.length > 0 ? `; usable: ${usable.join(', ')}` : ''),
  );
}
