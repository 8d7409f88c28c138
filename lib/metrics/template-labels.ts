import { errorText } from '../core/index.js';
import { getFirstWordName } from '../nest/locked/key-template-names.js';

/** Maximum number of labels beside those of known templates. Prometheus keeps a series for each, and tracers a list of names. */
const MAX_TEMPLATES = 200;
const OTHERS_LABEL = '(others)';

export class TemplateLabels {
  readonly #labelledTemplates = new Set<string>();
  #hasWarned = false;

  constructor(
    private readonly templateOf: (key: string) => string = getFirstWordName,
    private readonly knownTemplates: ReadonlySet<string> = new Set(),
  ) {}

  /**
   * Returns the label for the template of a key. It is `(others)` when `templateOf` throws: a mistake of the
   * application must hide no metrics and no spans.
   */
  labelFor(key: string): string {
    const template = this.#findTemplate(key);
    if (template === undefined) return OTHERS_LABEL;
    if (this.knownTemplates.has(template) || this.#labelledTemplates.has(template)) return template;
    if (this.#labelledTemplates.size >= MAX_TEMPLATES) return OTHERS_LABEL;
    this.#labelledTemplates.add(template);
    return template;
  }

  #findTemplate(key: string): string | undefined {
    try {
      return this.templateOf(key);
    } catch (error) {
      if (!this.#hasWarned) process.emitWarning(`templateOf of locks threw: ${errorText(error)}`);
      this.#hasWarned = true;
      return undefined;
    }
  }
}
