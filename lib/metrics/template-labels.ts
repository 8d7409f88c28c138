import { getFirstWordName } from '../nest/locked/key-template-names.js';

/** Maximum number of labels beside those of known templates. Prometheus keeps a series for each value of a label. */
const MAX_TEMPLATES = 200;
const OTHERS_LABEL = '(others)';

export class TemplateLabels {
  readonly #labelledTemplates = new Set<string>();

  constructor(
    private readonly templateOf: (key: string) => string = getFirstWordName,
    private readonly knownTemplates: ReadonlySet<string> = new Set(),
  ) {}

  labelFor(key: string): string {
    const template = this.templateOf(key);
    if (this.knownTemplates.has(template) || this.#labelledTemplates.has(template)) return template;
    if (this.#labelledTemplates.size >= MAX_TEMPLATES) return OTHERS_LABEL;
    this.#labelledTemplates.add(template);
    return template;
  }
}
