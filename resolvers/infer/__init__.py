"""From groups of items to schema.graphql: types and fields, written, tried and mended until they serve."""
