"""A graph in a DynamoDB table: the model, its keys, and the requests that read it. Knows no GraphQL server."""
