import graphql from '@graphql-eslint/eslint-plugin';

export default [
  {
    files: ['**/*.graphql'],
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: process.env.SCHEMA } } },
    plugins: { '@graphql-eslint': graphql },
    rules: {
      '@graphql-eslint/relay-connection-types': 'error',
      // Lists of nodes there are beside the edges: `nodes`. An edge's own item may be listed, and has no id: it is named
      // by its two ends.
      '@graphql-eslint/relay-edge-types': [
        'error',
        { withEdgeSuffix: true, listTypeCanWrapOnlyEdgeType: false, shouldImplementNode: false },
      ],
      '@graphql-eslint/relay-page-info': 'error',
      // A scan, and a search by relevance, go forward alone.
      '@graphql-eslint/relay-arguments': ['error', { includeBoth: false }],
      '@graphql-eslint/naming-convention': [
        'error',
        {
          types: 'PascalCase',
          FieldDefinition: 'camelCase',
          Argument: 'camelCase',
          InputValueDefinition: 'camelCase',
          DirectiveDefinition: 'camelCase',
          EnumValueDefinition: 'UPPER_CASE',
        },
      ],
    },
  },
];
