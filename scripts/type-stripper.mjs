import ts from 'typescript';

const compilerOptions = { target: 'ES2022', module: 'ESNext', removeComments: true };

/** Makes JavaScript of a TypeScript module, for webpack. */
export default function stripTypes(source) {
  return ts.transpileModule(source, { compilerOptions }).outputText;
}
