import { freePort } from '../servers/free-port.js';
import { serve } from './serve.js';

/** A child for `processes.spec.ts`. */
const api = {
  double: (value: bigint) => value * 2n,
  library: async () => Object.keys(await import('nestjs-distributed-lock/core')),
  port: () => freePort(),
  environment: () => ({ args: process.argv.slice(2), tree: process.env.TREE, execArgv: process.execArgv }),
  fail: (message: string) => {
    throw new RangeError(message);
  },
  hang: () => new Promise<void>(() => undefined),
  complain: (text: string) => void process.stderr.write(text),
  stayAlive: () => void setInterval(() => undefined, 1_000),
  forget: () => void Promise.reject(new Error('nobody listens')),
};

export type ExampleApi = typeof api;

serve(api);
