import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { IS_NEST_10 } from '../nest-10.js';

/**
 * Nest starts modules by their distance from the root, the greatest first. Nest 10 ends them in the same order, later
 * versions in the reverse one.
 */
const ENDS_FIRST = IS_NEST_10 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;

/** Makes the modules with this provider the last ones that Nest ends. */
export function endLast(modules: ModulesContainer, provider: symbol): void {
  setDistance(modules, provider, -ENDS_FIRST);
}

/** Makes the modules with this provider the first ones that Nest ends. From Nest 11 on, they are also the last to start. */
export function endFirst(modules: ModulesContainer, provider: Type): void {
  setDistance(modules, provider, ENDS_FIRST);
}

function setDistance(modules: ModulesContainer, provider: symbol | Type, distance: number): void {
  for (const module of modules.values()) {
    if (module.hasProvider(provider)) module.distance = distance;
  }
}
