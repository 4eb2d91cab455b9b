"""The model as a GraphQL API. Knows GraphQL, and neither HTTP nor boto3."""
