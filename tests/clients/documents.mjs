/*
 * Has the tools that build frontends write the documents of two little sources, in the folder that this is run in.
 *
 *   node documents.mjs
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from '@graphql-codegen/cli';
import { preset } from '@graphql-codegen/client-preset';

const tool = (name, ...options) =>
  execFileSync(join(import.meta.dirname, 'node_modules/.bin', name), options, { stdio: ['ignore', 'ignore', 'inherit'] });
const config = (file, value) => writeFileSync(file, JSON.stringify(value));

const DOCUMENTS = (name) => `
  query ${name}Query($number: ID!) { container(number: $number) { ...${name}_container } }
  fragment ${name}_container on Container { number operator }
`;

mkdirSync('src/__generated__', { recursive: true });
writeFileSync('src/Relay.js', `graphql\`${DOCUMENTS('Relay')}\`;`);
writeFileSync('src/Other.ts', `const document = graphql(\`${DOCUMENTS('Other')}\`);`);

config('relay.json', {});
config('relay.config.json', {
  src: './src',
  schema: './schema.graphql',
  language: 'javascript',
  artifactDirectory: './src/__generated__',
  persistConfig: { file: './relay.json' },
});
tool('relay-compiler');

await generate({
  schema: 'schema.graphql',
  documents: ['src/Other.ts'],
  silent: true,
  generates: { './gql/': { preset, presetConfig: { persistedDocuments: true } } },
});

config('persisted-query-manifest.config.json', { documents: ['src/Other.ts'], output: './manifest.json' });
tool('generate-persisted-query-manifest', '--config', 'persisted-query-manifest.config.json');
