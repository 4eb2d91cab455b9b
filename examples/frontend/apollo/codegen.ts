import { InMemoryCache } from '@apollo/client';
import type { CodegenConfig } from '@graphql-codegen/cli';

// What Apollo Client will send, __typename included: a persisted document is known by its text.
const cache = new InMemoryCache();

const config: CodegenConfig = {
  schema: '../api.graphql',
  documents: ['src/*.{ts,tsx}'],
  generates: {
    'src/__generated__/': {
      preset: 'client',
      documentTransforms: [
        {
          transform: ({ documents }) =>
            documents.map((file) => ({ ...file, document: file.document && cache.transformDocument(file.document) })),
        },
      ],
      presetConfig: { fragmentMasking: false, persistedDocuments: true },
      config: { scalars: { DateTime: 'string' }, useTypeImports: true, enumsAsTypes: true },
    },
  },
  silent: true,
};

export default config;
