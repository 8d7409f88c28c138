/** Finds what can be mutated in a source: conditions to turn round, bounds to move, and statements to leave out. */
import ts from 'typescript';

const { SyntaxKind: Kind } = ts;

const OTHER_OPERATOR = new Map([
  [Kind.LessThanToken, ['bound', '<=']],
  [Kind.LessThanEqualsToken, ['bound', '<']],
  [Kind.GreaterThanToken, ['bound', '>=']],
  [Kind.GreaterThanEqualsToken, ['bound', '>']],
  [Kind.AmpersandAmpersandToken, ['condition', '||']],
  [Kind.BarBarToken, ['condition', '&&']],
]);

/** Whether a file is a source with mutants. The page of the inspector runs in browsers, and its bundle is made from it. */
export function isMutable(file) {
  return /^lib\/(?!inspector\/page\/).*(?<!bundled-page|\.d)\.ts$/u.test(file);
}

/** Returns the mutations of a source: their kind, their place, and the code to put there, which is empty for none. */
export function findMutations(source) {
  const found = [];
  const visit = (node) => {
    if (isApart(node)) return;
    for (const [kind, target, after] of mutationsOf(node, source)) {
      const start = target.getStart(source);
      const line = source.getLineAndCharacterOfPosition(start).line + 1;
      found.push({ kind, line, start, end: target.end, before: target.getText(source), after });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function mutationsOf(node, source) {
  const condition = conditionOf(node);
  if (condition) return [['condition', condition, `!(${condition.getText(source)})`]];
  if (ts.isNumericLiteral(node)) return isName(node) ? [] : [['bound', node, movedByOne(node)]];
  if (isLeftOut(node)) return [['statement', node, '']];
  const [kind, operator] = (ts.isBinaryExpression(node) && OTHER_OPERATOR.get(node.operatorToken.kind)) || [];
  return operator ? [[kind, node, `${node.left.getText(source)} ${operator} ${node.right.getText(source)}`]] : [];
}

function conditionOf(node) {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) return node.expression;
  return ts.isForStatement(node) || ts.isConditionalExpression(node) ? node.condition : undefined;
}

/** A number one higher or lower: which one depends on its place, so that each draw finds the same. */
function movedByOne({ text, pos }) {
  return String(Number(text) + (pos % 2 === 0 ? 1 : -1));
}

function isName(node) {
  return node.parent.name === node || ts.isEnumMember(node.parent);
}

function isLeftOut(node) {
  if (ts.isReturnStatement(node)) return !node.expression;
  if (!ts.isExpressionStatement(node)) return ts.isThrowStatement(node);
  const { expression } = node;
  // Without a call of super, no instance of the class can be made at all.
  const isSuper = ts.isCallExpression(expression) && expression.expression.kind === Kind.SuperKeyword;
  return !isSuper && !ts.isStringLiteral(expression) && !isLogLine(expression);
}

/** Whether nothing in a node is mutated: types, imports, and messages of errors and of logs. */
function isApart(node) {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node) ||
    (ts.isNewExpression(node) && /(?:Error|Exception)$/u.test(node.expression.getText())) ||
    isLogLine(node)
  );
}

function isLogLine(node) {
  return ts.isCallExpression(node) && /(?:logger|console|Logger\(.*\))\??\.\w+$/iu.test(node.expression.getText());
}
