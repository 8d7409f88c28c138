import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { IS_NEST_10 } from '../nest-10.js';

/**
 * Value of Nest's `module.distance` with which the shutdown hooks of a module run before those of all others. Nest runs
 * the hooks of a start by descending distance. Nest 10 does the same at a shutdown, later versions the reverse.
 */
const FIRST_TO_END_DISTANCE = IS_NEST_10 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;

export function makeModuleEndLast(modules: ModulesContainer, token: symbol): void {
  setDistance(modules, token, -FIRST_TO_END_DISTANCE);
}

/** From Nest 11 on, modules that end first also start after all others. */
export function makeModuleEndFirst(modules: ModulesContainer, token: Type): void {
  setDistance(modules, token, FIRST_TO_END_DISTANCE);
}

function setDistance(modules: ModulesContainer, token: symbol | Type, distance: number): void {
  for (const module of modules.values()) {
    if (module.hasProvider(token)) module.distance = distance;
  }
}
