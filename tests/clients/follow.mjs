/*
 * Runs one operation by a client of npm, and tells on standard output what comes of it, a line of JSON for each call.
 * A line on standard input ends the operation.
 *
 *   node follow.mjs graphql-ws|graphql-sse URL QUERY VARIABLES
 */
import { createClient as overEvents } from 'graphql-sse';
import { createClient as overWebSocket } from 'graphql-ws';
import WebSocket from 'ws';

const [kind, url, query, variables] = process.argv.slice(2);
const say = (word, value = null) => console.log(JSON.stringify([word, value]));
const soon = () => new Promise((resolve) => setTimeout(resolve, 50));

const clients = {
  'graphql-ws': () =>
    overWebSocket({
      url: url.replace(/^http/, 'ws'),
      webSocketImpl: WebSocket,
      retryAttempts: 200,
      retryWait: soon,
      // Unless told it gives up where it finds nobody, as between the end of a server and the start of the next.
      shouldRetry: () => true,
    }),
  'graphql-sse': () => overEvents({ url, retryAttempts: 200, retry: soon }),
};

const client = clients[kind]();
const stop = client.subscribe(
  { query, variables: JSON.parse(variables) },
  {
    next: (result) => say('next', result),
    error: (error) => finish('error', Array.isArray(error) ? error : String(error.message || error.reason)),
    complete: () => finish('complete'),
  },
);
process.stdin.once('data', stop);

function finish(word, value) {
  say(word, value);
  client.dispose();
  process.stdin.destroy();
}
