/* What browsers have and Node 20 has not, and what the examples of the README leave to the reader. */
import WebSocket from 'ws';

Object.assign(globalThis, {
  WebSocket,
  query: 'subscription Count { count }',
  show: (result) => console.log(JSON.stringify(result)),
  fetchQuery: async () => ({ data: {} }),
});
