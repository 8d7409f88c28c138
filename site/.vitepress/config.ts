import { readdirSync } from 'node:fs';
import { defineConfig, type MarkdownRenderer, type Plugin } from 'vitepress';
import { headingName, linkOf, PACKAGE, pictureOf, read, REPOSITORY, ROOT, SHOWN } from './links.js';
import { navigation } from './navigation.js';

const { name, description, exports } = PACKAGE;

export default defineConfig({
  base: '/',
  title: name,
  description,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: ROOT,
  srcExclude: readdirSync(ROOT)
    .filter((entry) => ![...SHOWN, 'site'].includes(entry))
    .flatMap((entry) => [entry, `${entry}/**`]),
  outDir: 'dist',
  cacheDir: 'node_modules/.cache',
  // Pages keep their places, so that links between them work here as they do in the repository.
  rewrites: (page) => page.replace(/^site\//u, '').replace(/README\.md$/u, 'index.md'),
  ignoreDeadLinks: 'localhostLinks',
  markdown: { anchor: { slugify: headingName }, config: mapLinks },
  vite: { plugins: [vueOfThisFolder()] },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Documentation', link: '/docs/' },
      { text: 'API', link: '/api/' },
      { text: 'Repository', link: REPOSITORY },
    ],
    sidebar: { '/': navigation(read('docs/README.md')), '/api/': [{ text: 'The public API', items: apiPages() }] },
    outline: [2, 3],
  },
});

/** One for each entry point; typedoc writes them. */
function apiPages(): { text: string; link: string }[] {
  return Object.keys(exports)
    .filter((path) => !path.endsWith('.json'))
    .map((path) => (path === '.' ? name : path.slice(2)))
    .map((text) => ({ text, link: `/api/${text}` }));
}

function mapLinks(md: MarkdownRenderer): void {
  md.core.ruler.push('links-of-the-site', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' && token.attrGet('href');
      if (href) token.attrSet('href', linkOf(href, env.relativePath));
      if (token.type === 'image') token.attrSet('src', pictureOf(token.attrGet('src') ?? '', env.relativePath));
    }
  });
}

/** The pages lie outside of this folder, and would not find it. */
function vueOfThisFolder(): Plugin {
  return {
    name: 'vue-of-this-folder',
    enforce: 'pre',
    resolveId(id) {
      return /^vue(?:\/|$)/u.test(id) ? this.resolve(id, import.meta.filename, { skipSelf: true }) : null;
    },
  };
}
