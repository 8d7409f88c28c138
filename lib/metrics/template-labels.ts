import { withFallback } from '../core/index.js';
import { getFirstWordName } from '../nest/locked/key-template-names.js';

/** Maximum number of labels for templates that are not in `knownTemplates`. Each label is a series in Prometheus. */
const MAX_UNKNOWN_TEMPLATES = 200;
const OTHERS_LABEL = '(others)';

export class TemplateLabels {
  readonly #labelledTemplates = new Set<string>();
  readonly #findTemplate: (key: string) => string | undefined;

  constructor(
    templateOf: (key: string) => string = getFirstWordName,
    private readonly knownTemplates: ReadonlySet<string> = new Set(),
  ) {
    this.#findTemplate = withFallback('templateOf of locks threw', templateOf, () => undefined);
  }

  /**
   * Returns the label for the template of a key. Returns `(others)` when `templateOf` throws, so that metrics and spans
   * are recorded all the same.
   */
  labelFor(key: string): string {
    const template = this.#findTemplate(key);
    if (template === undefined) return OTHERS_LABEL;
    if (this.knownTemplates.has(template) || this.#labelledTemplates.has(template)) return template;
    if (this.#labelledTemplates.size >= MAX_UNKNOWN_TEMPLATES) return OTHERS_LABEL;
    this.#labelledTemplates.add(template);
    return template;
  }
}
