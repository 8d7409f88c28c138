/** Builds dist: ES modules for `import`, CommonJS for `require`, each with its declarations and the bundled page. */
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execPath, exit } from 'node:process';
import ts from 'typescript';
import { bundlePage } from './bundle-page.mjs';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const tsc = join(root, 'node_modules/typescript/bin/tsc');

rmSync(dist, { recursive: true, force: true });
// Declarations are the same for both formats. This step also checks the types, and the next ones need not.
compile('tsconfig.build.json', '--emitDeclarationOnly');
stripInnerDeclarations(join(dist, 'esm'));
const page = await bundlePage();
cpSync(join(dist, 'esm'), join(dist, 'cjs'), { recursive: true });
for (const [config, folder, type, module] of [
  ['tsconfig.build.json', 'esm', 'module', ts.ModuleKind.ES2022],
  ['tsconfig.build-cjs.json', 'cjs', 'commonjs', ts.ModuleKind.CommonJS],
]) {
  // Editors show the comments of declarations. Without those of the code it is a third smaller.
  compile(config, '--noCheck', '--declaration', 'false', '--removeComments');
  // The page is bundled anew: the checked-in one may be older than its sources.
  const { outputText } = ts.transpileModule(page, { compilerOptions: { module, target: ts.ScriptTarget.ES2022 } });
  writeFileSync(join(dist, folder, 'inspector/bundled-page.js'), outputText);
  writeFileSync(join(dist, folder, 'package.json'), `${JSON.stringify({ type })}\n`);
}

/**
 * Removes declarations that no entry point leads to, and the comments of those that no entry point exports. The package
 * becomes a sixth smaller.
 */
function stripInnerDeclarations(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.d.ts'));
  const text = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  const importsOf = (file) =>
    Array.from(text.get(file).matchAll(/(?: from |import\()['"](\..*?)\.js['"]/g), ([, path]) =>
      join(dirname(file), `${path}.d.ts`),
    );
  const entries = files.filter((file) => file.endsWith('index.d.ts'));
  const exported = entries.flatMap(importsOf);
  const reached = new Set(entries);
  for (const file of reached) for (const imported of importsOf(file)) reached.add(imported);
  const printer = ts.createPrinter({ removeComments: true });
  for (const file of files) {
    if (!reached.has(file)) rmSync(join(folder, file));
    else if (!entries.includes(file) && !exported.includes(file)) {
      const source = ts.createSourceFile(file, text.get(file), ts.ScriptTarget.Latest);
      writeFileSync(join(folder, file), printer.printFile(source));
    }
  }
}

function compile(config, ...options) {
  const { status } = spawnSync(execPath, [tsc, '-p', join(root, config), ...options], { stdio: 'inherit' });
  if (status !== 0) exit(status ?? 1);
}
