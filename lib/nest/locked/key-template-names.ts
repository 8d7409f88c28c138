import type { DiscoveryService } from '@nestjs/core';
import { keyClass } from '../../core/index.js';
import type { KeyTemplate } from '../keys/key-template.js';
import { lockedMethods } from './locked-method.js';
import { isObject } from '../../decorators/is-object.js';

/** All that a value in a key may be: see `encodeValue` in `locked-keys.ts`. */
const VALUE = String.raw`[\p{L}\p{M}\p{N}.@%-]+`;

const BEHIND_SEPARATOR = /^([^\p{L}\p{N}]*[\p{L}\p{N}*]+[^\p{L}\p{N}*]).*$/su;

/** The name that many keys share: few enough for metrics and tables. */
export class KeyTemplateNames {
  readonly #templates: readonly { readonly name: string; readonly pattern: RegExp }[];

  constructor(templates: readonly KeyTemplate[]) {
    const named = new Map(templates.map((template) => [template.source, template]));
    // The one that says most about a key comes first.
    this.#templates = [...named.values()]
      .toSorted((one, other) => textOf(other).length - textOf(one).length)
      .map((template) => ({ name: template.source, pattern: patternOf(template) }));
  }

  /** Those of all methods with `@Locked` in the application. */
  static of(discovery: DiscoveryService): KeyTemplateNames {
    const instances = [...discovery.getControllers(), ...discovery.getProviders()].map(({ instance }) => instance);
    return new KeyTemplateNames(
      instances.flatMap((instance: unknown) =>
        isObject(instance) ? lockedMethods(instance).flatMap(({ templates }) => templates) : [],
      ),
    );
  }

  /** The templates themselves. */
  get all(): ReadonlySet<string> {
    return new Set(this.#templates.map(({ name }) => name));
  }

  /** @param key without the namespace. One of no template has `*` for each number. */
  nameOf(key: string): string {
    return this.templateOf(key) ?? keyClass(key);
  }

  /** @param key without the namespace. `undefined` for one of no template. */
  templateOf(key: string): string | undefined {
    return this.#templates.find(({ pattern }) => pattern.test(key))?.name;
  }
}

/**
 * A name for keys of no template that shows none of their values: all behind the first separator is `*`, and each number
 * before it. Metrics and traces go to places that no key should.
 */
export function keyFamily(key: string): string {
  return keyClass(key).replace(BEHIND_SEPARATOR, '$1*');
}

function textOf({ start, placeholders }: KeyTemplate): string {
  return start + placeholders.map(({ textBehind }) => textBehind).join('');
}

function patternOf({ start, placeholders }: KeyTemplate): RegExp {
  const rest = placeholders.map(({ textBehind }) => VALUE + escaped(textBehind)).join('');
  return new RegExp(`^${escaped(start)}${rest}$`, 'u');
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}]/gu, String.raw`\$&`);
}
