import ts from 'typescript';

const compilerOptions = { target: 'ES2022', module: 'ESNext', removeComments: true };

/** Compiles a TypeScript module to JavaScript for webpack. */
export default function stripTypes(source) {
  return ts.transpileModule(source, { compilerOptions }).outputText;
}
