import { defineConfig } from 'vite';

export default defineConfig({
  base: '/graphql-ide/',
  build: {
    // The licences of what the bundle contains, for whoever ships it in an image or a wheel.
    license: { fileName: 'licenses.md' },
    // Monaco is one big piece by nature; the limit only silences a warning that nobody can act on.
    chunkSizeWarningLimit: 4096,
    // "use client" means something to servers that render React, and nothing to a page like this one.
    rolldownOptions: { checks: { moduleLevelDirective: false } },
  },
  // `npm run dev`: open /graphql on Vite's port. The page comes from here, its queries go to a running tablegraph.
  server: {
    proxy: {
      '^/graphql($|\\?)': {
        target: process.env.TABLEGRAPH_URL ?? 'http://127.0.0.1:8000',
        bypass: (request) => (request.method === 'GET' ? '/graphql-ide/index.html' : undefined),
      },
    },
  },
});
