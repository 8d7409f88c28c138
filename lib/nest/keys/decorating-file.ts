const THIS_FILE_PATTERN = /nest\/keys\/decorating-file\.[jt]s$/u;
/** Pattern of files in packages that call the decorators of a class. */
const DECORATING_PACKAGE_PATTERN = /\/node_modules\/(?:@nestjs\/common|reflect-metadata|tslib)\//u;
const TYPESCRIPT_FILE_PATTERN = /\.[cm]?tsx?(?:[?#].*)?$/u;
/** Number of stack frames to read: more than decorators and module loaders put on the stack. */
const MAX_STACK_FRAMES = 50;

/**
 * Returns whether a loader such as tsx compiled the class that is being decorated: the stack then names a TypeScript
 * file. These loaders do not shorten the names of arguments.
 */
export function isDecoratedInTypeScript(): boolean {
  const [thisFile = '', ...callingFiles] = readStackFiles();
  if (!THIS_FILE_PATTERN.test(thisFile)) return false;
  const libraryFolder = thisFile.replace(THIS_FILE_PATTERN, '');
  const decoratingFile = callingFiles.find(
    (file) => !file.startsWith(libraryFolder) && !DECORATING_PACKAGE_PATTERN.test(file),
  );
  return decoratingFile !== undefined && TYPESCRIPT_FILE_PATTERN.test(decoratingFile);
}

/** Returns the files of the stack, this file first, without applying source maps. Restores the settings of `Error`. */
function readStackFiles(): readonly string[] {
  const { stackTraceLimit } = Error;
  const prepareStackTrace: unknown = Reflect.get(Error, 'prepareStackTrace');
  let files: readonly string[] = [];
  // `Reflect.set` does not throw where the application has frozen `Error`.
  Reflect.set(Error, 'stackTraceLimit', MAX_STACK_FRAMES);
  Reflect.set(Error, 'prepareStackTrace', (_error: Error, frames: readonly NodeJS.CallSite[]) => {
    files = frames.map((frame) => (frame.getFileName() ?? '').replaceAll('\\', '/'));
    return '';
  });
  try {
    void new Error('stack').stack;
  } finally {
    Reflect.set(Error, 'prepareStackTrace', prepareStackTrace);
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
  return files;
}
