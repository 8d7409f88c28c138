import type { Holding, Schedule, Sight, Step } from './moments.js';

/** A schedule for a reader, a step a line, beside what was seen. */
export function described({ seed, isMixed, moments }: Schedule, sights: readonly Sight[]): string {
  const lines = moments.map(({ step, answer, holdings, isOpen }, at) => {
    const sight = sights[at];
    const must = `${answer ?? ''} (${holdings.map(holding).join(' ')})${isOpen ? ' or fewer' : ''}`;
    const seen = sight && `${sight.answer ?? ''} (${sight.holdings.map(holding).join(' ')})`;
    return `${at} ${said(step)}: ${must}; seen: ${seen}`;
  });
  return [`seed ${seed}${isMixed ? ', several limits' : ''}`, ...lines].join('\n');
}

function said(step: Step): string {
  if (step.does === 'pass') return `${step.units} units pass`;
  if (step.does === 'revoke') return 'the key is revoked';
  if (step.does === 'ask') return `${step.owner} asks for ${step.lasts}${step.waits ? ' and waits' : ''}`;
  return step.does === 'silence' ? `${step.owner} falls silent` : `${step.owner} ${step.does}s`;
}

function holding({ owner, left, token }: Holding): string {
  return [owner, left ?? 'not asked', token].filter((part) => part !== undefined).join(':');
}
