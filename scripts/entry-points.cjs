/** Lists the entry points of the package: the folders of lib that have an index.ts. */
const { existsSync, readdirSync } = require('node:fs');
const path = require('node:path');

const root = path.resolve(__dirname, '..');

/** Source files of the entry points, from the root of the repository, by sub-paths as in `exports` of package.json. */
const ENTRY_POINTS = {
  '.': 'lib/index.ts',
  ...findEntryPoints('lib'),
  ...findEntryPoints('lib/backends'),
};

function findEntryPoints(folder) {
  const names = readdirSync(path.join(root, folder));
  const files = names.map((name) => [`./${name}`, `${folder}/${name}/index.ts`]);
  return Object.fromEntries(files.filter(([, file]) => existsSync(path.join(root, file))));
}

module.exports = { ENTRY_POINTS };
