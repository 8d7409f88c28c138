/**
 * Writes what each entry point exports to api/, without comments and private members. `--check` compares instead, and fails
 * when they differ.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { argv } from 'node:process';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';

import { ENTRY_POINTS } from './entry-points.cjs';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'api');
const { name: packageName } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Pairs of a sub-path and its source file. */
const entries = Object.entries(ENTRY_POINTS).map(([path, file]) => [path, join(root, file)]);

const program = ts.createProgram(
  entries.map(([, file]) => file),
  {
    ...ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.build.json'), {}, ts.sys).options,
    emitDeclarationOnly: true,
    removeComments: true,
    stripInternal: true,
  },
);
const checker = program.getTypeChecker();
/** Declarations that the compiler emits, by their source files. */
const emitted = new Map();
const printer = ts.createPrinter({ removeComments: true });

/** Symbols of the core. Other entry points that export them only list their names. */
const core = new Set(exportsOf(join(root, 'lib/core/index.ts')).map(targetOf));

const reports = new Map();
for (const [path, file] of entries)
  reports.set(`${path === '.' ? 'index' : path.slice(2)}.md`, await renderReport(path, file));
if (argv.includes('--check')) compareWithSaved();
else saveReports();

async function renderReport(path, file) {
  const symbols = exportsOf(file).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const shared = path === './core' ? [] : symbols.filter((symbol) => core.has(targetOf(symbol)));
  const own = symbols.filter((symbol) => !shared.includes(symbol));
  const parts = own.map(renderDeclaration);
  if (shared.length > 0) {
    parts.unshift(`export { ${shared.map(({ name }) => name).join(', ')} } from '${packageName}/core';`);
  }
  const inner = findInnerTypes(own.map(targetOf), new Set([...core, ...symbols.map(targetOf)]));
  if (inner.length > 0) parts.push('// Without a name of their own:', ...inner.map(renderDeclaration));
  const text = `# ${join(packageName, path)}\n\n\`\`\`ts\n${parts.join('\n\n')}\n\`\`\`\n`;
  return format(text, { ...(await resolveConfig(file)), parser: 'markdown' });
}

/** Returns the types of the library that `symbols` mention and that no entry point exports. */
function findInnerTypes(symbols, known) {
  const found = symbols.flatMap((symbol) => findMentionedTypes(symbol).filter((type) => !known.has(type)));
  const types = [...new Set(found)];
  return types.length === 0 ? [] : [...types, ...findInnerTypes(types, new Set([...known, ...types]))];
}

function findMentionedTypes(symbol) {
  const names = new Set(renderDeclaration(symbol).match(/\b[A-Z]\w+/g));
  return filesOf(symbol)
    .flatMap((file) => checker.getSymbolsInScope(file, ts.SymbolFlags.Type | ts.SymbolFlags.Alias))
    .filter(({ name }) => names.has(name))
    .map((type) => checker.getExportSymbolOfSymbol(targetOf(type)))
    .filter((type) => filesOf(type).some(({ fileName }) => fileName.startsWith(join(root, 'lib/'))));
}

function exportsOf(file) {
  return checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
}

function targetOf(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function renderDeclaration(symbol) {
  const target = targetOf(symbol);
  const code = filesOf(target).flatMap((file) => statementsOf(file, target.name));
  const renamed = target.name === symbol.name ? [] : [`// as ${symbol.name}`];
  return [...renamed, ...code].join('\n');
}

/** Returns the files that declare a symbol: one, except for an overloaded name of a library. */
function filesOf(symbol) {
  return [...new Set((symbol.declarations ?? []).map((declaration) => declaration.getSourceFile()))];
}

/** Returns the statements that declare `name` in the emitted declarations of a file. */
function statementsOf(file, name) {
  const declarations = declarationsOf(file);
  return declarations.statements
    .filter((statement) => namesOf(statement).includes(name))
    .map((statement) => printer.printNode(ts.EmitHint.Unspecified, removePrivateMembers(statement), declarations));
}

function declarationsOf(file) {
  if (!emitted.has(file)) {
    let text = '';
    program.emit(file, (_, declarations) => (text = declarations), undefined, true);
    emitted.set(file, ts.createSourceFile('api.d.ts', text, ts.ScriptTarget.Latest, true));
  }
  return emitted.get(file);
}

function namesOf(statement) {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  return statement.name ? [statement.name.getText()] : [];
}

function removePrivateMembers(statement) {
  if (!ts.isClassDeclaration(statement)) return statement;
  const { modifiers, name, typeParameters, heritageClauses } = statement;
  const members = statement.members.filter(
    (member) => member.name?.kind !== ts.SyntaxKind.PrivateIdentifier && !isPrivate(member),
  );
  return ts.factory.updateClassDeclaration(statement, modifiers, name, typeParameters, heritageClauses, members);
}

function isPrivate(member) {
  return (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) !== 0;
}

function saveReports() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [file, text] of reports) writeFileSync(join(folder, file), text);
}

/** Compares the reports with api/, and prints the removed and added lines. */
function compareWithSaved() {
  const present = new Set(readdirSync(folder));
  const differing = [...new Set([...reports.keys(), ...present])].filter((file) => {
    const now = (reports.get(file) ?? '').split('\n');
    const before = present.has(file) ? readFileSync(join(folder, file), 'utf8').split('\n') : [];
    const changes = [
      ...before.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
      ...now.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
    ];
    if (now.join('\n') === before.join('\n')) return false;
    console.error([relative(root, join(folder, file)), ...changes].join('\n'));
    return true;
  });
  if (differing.length === 0) return;
  console.error('The public API has changed. If you mean it, run "npm run api", and say in CHANGELOG.md what changes.');
  process.exitCode = 1;
}
