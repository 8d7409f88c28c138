import type { DiscoveryService } from '@nestjs/core';
import { replaceNumbers } from '../../core/index.js';
import type { KeyTemplate } from '../keys/key-template.js';
import { getLockedMethods } from './locked-methods.js';
import { isObject } from '../../decorators/is-object.js';

/** Patterns of a plain and of an encoded character. Results of `encodeValue` in `locked-keys.ts` consist of these. */
const PLAIN_CHAR_SOURCE = String.raw`[\p{L}\p{M}\p{N}.@-]`;
const ENCODED_CHAR_SOURCE = '%[0-9A-F]{2}';

/** Pattern of a key of two words or more; its group is the first word and the separator after it. */
const FIRST_WORD_PATTERN = /^([^\p{L}\p{N}]*[\p{L}\p{N}*]+[^\p{L}\p{N}*]).*$/su;

export class KeyTemplateNames {
  readonly #templates: readonly { readonly name: string; readonly pattern: RegExp }[];

  constructor(templates: readonly KeyTemplate[]) {
    const templatesBySource = new Map(templates.map((template) => [template.source, template]));
    // The template with the longest literal text comes first, because several templates may match one key.
    this.#templates = [...templatesBySource.values()]
      .toSorted((one, other) => getLiteralText(other).length - getLiteralText(one).length)
      .map((template) => ({ name: template.source, pattern: createTemplatePattern(template) }));
  }

  static of(discovery: DiscoveryService): KeyTemplateNames {
    const instances = [...discovery.getControllers(), ...discovery.getProviders()].map(({ instance }) => instance);
    return new KeyTemplateNames(
      instances.flatMap((instance: unknown) =>
        isObject(instance) ? getLockedMethods(instance).flatMap(({ templates }) => templates) : [],
      ),
    );
  }

  get templates(): ReadonlySet<string> {
    return new Set(this.#templates.map(({ name }) => name));
  }

  /**
   * Returns the template of a key, or the key with `*` for each number when no template can have made it.
   * @param key without the namespace
   */
  nameOf(key: string): string {
    return this.templateOf(key) ?? replaceNumbers(key);
  }

  /** @param key without the namespace */
  templateOf(key: string): string | undefined {
    return this.#templates.find(({ pattern }) => pattern.test(key))?.name;
  }
}

/**
 * Returns the first word of a key, with `*` for its numbers and for all that follows. Metrics and traces leave the
 * application, and a key may contain private values.
 */
export function getFirstWordName(key: string): string {
  return replaceNumbers(key).replace(FIRST_WORD_PATTERN, '$1*');
}

function getLiteralText({ leadingText, placeholders }: KeyTemplate): string {
  return leadingText + placeholders.map(({ textAfter }) => textAfter).join('');
}

function createTemplatePattern({ leadingText, placeholders }: KeyTemplate): RegExp {
  const placeholderSources = placeholders
    .map(({ textAfter }) => createValuePatternSource(textAfter) + escapePattern(textAfter))
    .join('');
  return new RegExp(`^${escapePattern(leadingText)}${placeholderSources}$`, 'u');
}

/**
 * Returns the source of a pattern for a value. The pattern excludes the first character of `textAfter`, so that a key
 * matches a template in one way only.
 */
function createValuePatternSource(textAfter: string): string {
  const [delimiter] = textAfter;
  const plainCharSource =
    delimiter === undefined ? PLAIN_CHAR_SOURCE : `(?!${escapePattern(delimiter)})${PLAIN_CHAR_SOURCE}`;
  return `(?:${ENCODED_CHAR_SOURCE}|${plainCharSource})+`;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}]/gu, String.raw`\$&`);
}
