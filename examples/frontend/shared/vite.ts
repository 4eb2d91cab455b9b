import type { CommonServerOptions } from 'vite';

/** Hand /graphql, WebSockets too, on to a running tablegraph: the page and its API are one site, and CORS has no part. */
export const proxy: CommonServerOptions['proxy'] = {
  '/graphql': { target: process.env.TABLEGRAPH_URL ?? 'http://127.0.0.1:8000', ws: true },
};
