// In a file of ours, Vite's dev server prepares the worker's CommonJS dependencies; named in workers.js, it would not.
import 'monaco-graphql/esm/graphql.worker.js';
