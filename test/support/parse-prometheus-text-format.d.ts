/** Has no types of its own. */
declare module 'parse-prometheus-text-format' {
  export interface Metric {
    readonly name: string;
    readonly type: string;
    readonly metrics: readonly {
      readonly labels?: Readonly<Record<string, string>>;
      readonly value?: string;
    }[];
  }
  export default function parse(text: string): Metric[];
}
