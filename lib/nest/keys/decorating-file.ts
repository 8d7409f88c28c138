const THIS_FILE = /nest\/keys\/decorating-file\.[jt]s$/u;
/** These call decorators on behalf of the class. */
const HELPERS = /\/node_modules\/(?:@nestjs\/common|reflect-metadata|tslib)\//u;
const TYPESCRIPT = /\.[cm]?tsx?(?:[?#].*)?$/u;

/**
 * Whether the class that is being decorated was compiled as it was loaded, as by tsx: the runtime calls its file by the
 * name of the source. No such compiler renames arguments. Source maps change nothing of these names.
 */
export function isDecoratedInTypeScript(): boolean {
  const [own = '', ...files] = filesOnStack();
  if (!THIS_FILE.test(own)) return false;
  const library = own.replace(THIS_FILE, '');
  const decorating = files.find((file) => !file.startsWith(library) && !HELPERS.test(file));
  return decorating !== undefined && TYPESCRIPT.test(decorating);
}

/** The files of the calls that led here, the last call first, by the names that the runtime has for them. */
function filesOnStack(): readonly string[] {
  const { stackTraceLimit } = Error;
  const prepareStackTrace: unknown = Reflect.get(Error, 'prepareStackTrace');
  let files: readonly string[] = [];
  // Intrinsics may be frozen.
  Reflect.set(Error, 'stackTraceLimit', 50);
  Reflect.set(Error, 'prepareStackTrace', (_error: Error, calls: readonly NodeJS.CallSite[]) => {
    files = calls.map((call) => (call.getFileName() ?? '').replaceAll('\\', '/'));
    return '';
  });
  try {
    void new Error('here').stack;
  } finally {
    Reflect.set(Error, 'prepareStackTrace', prepareStackTrace);
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
  return files;
}
