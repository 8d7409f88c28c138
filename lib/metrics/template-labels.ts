import { keyFamily } from '../nest/locked/key-template-names.js';

/** A label of Prometheus may have few values: each is a series of its own, for ever. */
const MOST_TEMPLATES = 200;
const OTHERS = '(others)';

/** The templates of keys as labels: those that are known, the first 200 others, and one for all that come later. */
export class TemplateLabels {
  readonly #seen = new Set<string>();

  constructor(
    private readonly templateOf: (key: string) => string = keyFamily,
    private readonly known: ReadonlySet<string> = new Set(),
  ) {}

  of(key: string): string {
    const template = this.templateOf(key);
    if (this.known.has(template) || this.#seen.has(template)) return template;
    if (this.#seen.size >= MOST_TEMPLATES) return OTHERS;
    this.#seen.add(template);
    return template;
  }
}
