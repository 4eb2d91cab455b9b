import { createClient } from 'graphql-ws';

/** Where the API is: behind Vite's proxy, unless VITE_API names another site (which needs `--cors-origins` there). */
export const API = new URL(import.meta.env.VITE_API ?? '/graphql', location.href).href;

/** One WebSocket for all subscriptions; it connects again for as long as the page is open. */
export const socket = createClient({
  url: API.replace(/^http/, 'ws'),
  retryAttempts: Infinity,
  shouldRetry: () => true,
});
