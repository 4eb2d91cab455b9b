import { defineConfig } from 'vite';

const PAGES = { '/graphql': 'index.html', '/graph': 'graph.html', '/schema': 'schema.html' };
const target = process.env.TABLEGRAPH_URL ?? 'http://127.0.0.1:8000';

export default defineConfig({
  base: '/graphql-ide/',
  build: {
    // The licences of what the bundle contains, for whoever ships it in an image or a wheel.
    license: { fileName: 'licenses.md' },
    // Monaco is one big piece by nature; the limit only silences a warning that nobody can act on.
    chunkSizeWarningLimit: 4096,
    rolldownOptions: {
      input: Object.values(PAGES),
      // "use client" means something to servers that render React, and nothing to a page like this one.
      checks: { moduleLevelDirective: false },
    },
  },
  // `npm run dev`: open a page on Vite's port. The pages come from here, their queries go to a running tablegraph.
  server: {
    proxy: {
      '^/(graphql|graph|schema)($|\\?)': {
        target,
        bypass: ({ method, url }) => (method === 'GET' ? `/graphql-ide/${PAGES[url.split('?')[0]]}` : undefined),
      },
      '^/schema.json$': { target },
    },
  },
});
