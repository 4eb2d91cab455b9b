// Monaco's helpers for completion, checking and folding. GraphiQL has this file too (graphiql/setup-workers/vite), but
// Vite's dev server does not start with it: `?worker` is understood in a project's own files only.
import EditorWorker from 'monaco-editor/esm/vs/editor/editor.worker.js?worker';
import JsonWorker from 'monaco-editor/esm/vs/language/json/json.worker.js?worker';
import GraphQLWorker from './graphql.worker.js?worker';

const workers = { json: JsonWorker, graphql: GraphQLWorker };

globalThis.MonacoEnvironment = {
  getWorker: (_id, label) => new (workers[label] ?? EditorWorker)(),
};
