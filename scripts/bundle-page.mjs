/** Bundles lib/inspector/page into one HTML text that includes its style and script. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { format, resolveConfig } from 'prettier';
import webpack from 'webpack';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'lib/inspector/page');

/** Checked-in module of lib that has the page. */
export const PAGE_FILE = join(root, 'lib/inspector/bundled-page.ts');

/** Returns the source of a module with the page and the hashes for its Content-Security-Policy. */
export async function bundlePage() {
  const style = readFileSync(join(folder, 'page.css'), 'utf8');
  const script = await bundleScript();
  const html = readFileSync(join(folder, 'page.html'), 'utf8')
    .replace('<link rel="stylesheet" href="page.css" />', () => `<style>${style}</style>`)
    .replace('<script src="main.ts"></script>', () => `<script>${script}</script>`);
  const source = `/** Page that "npm run page" bundles from the files of page/. A spec compares the two. */
    export const PAGE: string = ${JSON.stringify(html)};
    export const STYLE_HASH = '${hashOf(style)}';
    export const SCRIPT_HASH = '${hashOf(script)}';`;
  return format(source, { ...(await resolveConfig(PAGE_FILE)), parser: 'typescript' });
}

async function bundleScript() {
  const { compilation } = await promisify(webpack)({
    mode: 'production',
    target: 'web',
    context: folder,
    entry: './main.ts',
    resolve: { extensionAlias: { '.js': '.ts' } },
    module: { rules: [{ test: /\.ts$/, use: join(import.meta.dirname, 'type-stripper.mjs') }] },
    performance: false,
    // The script is read from the compilation, and no file is written.
    plugins: [({ hooks }) => hooks.shouldEmit.tap('bundle-page', () => false)],
  });
  if (compilation.errors.length > 0) throw new AggregateError(compilation.errors, String(compilation.errors[0]));
  return compilation.getAsset('main.js').source.source();
}

function hashOf(text) {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
