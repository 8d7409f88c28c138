/**
 * Writes the bundled page of the inspector, which lib serves without a build. `--check` fails when it is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { bundlePage, PAGE_FILE } from './bundle-page.mjs';

const source = await bundlePage();
if (!argv.includes('--check')) writeFileSync(PAGE_FILE, source);
else if (readFileSync(PAGE_FILE, 'utf8') !== source) {
  console.error('lib/inspector/page has changed: run "npm run page".');
  process.exitCode = 1;
}
