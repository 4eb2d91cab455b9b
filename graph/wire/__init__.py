"""A thin way to DynamoDB for the requests that make up nearly all: HTTP by asyncio, signed by us."""
