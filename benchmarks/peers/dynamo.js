// The table by the AWS SDK: nodes in batches, pages of edges, parents by the index. What the GraphQL servers share.

import { Agent } from 'node:http'
import { BatchGetItemCommand, DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb'

const TABLE = process.env.TABLE
const INDEX = 'reverse-lookup-index'
const KEYS_IN_A_BATCH = 100

// Endpoint, region and keys come from the environment, as the SDK reads them.
const client = new DynamoDBClient({
  maxAttempts: 1,
  requestHandler: { httpAgent: new Agent({ keepAlive: true, maxSockets: 64 }) }
})

async function batch (keys) {
  const items = []
  let wanted = { [TABLE]: { Keys: keys.map(key => ({ objectId: { S: key }, relatedObjectId: { S: key } })) } }
  while (wanted && Object.keys(wanted).length > 0) {
    const answer = await client.send(new BatchGetItemCommand({ RequestItems: wanted }))
    items.push(...answer.Responses[TABLE] ?? [])
    wanted = answer.UnprocessedKeys
  }
  return items
}

// Give the item of each key, in order; null where there is none, and for a key that is null.
export async function nodes (keys) {
  const unique = [...new Set(keys)].filter(key => key !== null)
  const batches = []
  for (let start = 0; start < unique.length; start += KEYS_IN_A_BATCH) {
    batches.push(batch(unique.slice(start, start + KEYS_IN_A_BATCH)))
  }
  const found = new Map()
  for (const item of (await Promise.all(batches)).flat()) found.set(item.objectId.S, item)
  return keys.map(key => found.get(key) ?? null)
}

// Give the edges of a node to nodes that begin so, one more than asked for: it tells whether there is a next page.
export async function edges (key, prefix, first, after) {
  const answer = await client.send(new QueryCommand({
    TableName: TABLE,
    KeyConditionExpression: 'objectId = :p AND begins_with(relatedObjectId, :s)',
    ExpressionAttributeValues: { ':p': { S: key }, ':s': { S: prefix } },
    ExclusiveStartKey: after && { objectId: { S: key }, relatedObjectId: { S: after } },
    Limit: first + 1
  }))
  return answer.Items
}

// Give the key of the node that a node hangs on.
export async function parent (key, prefix) {
  const answer = await client.send(new QueryCommand({
    TableName: TABLE,
    IndexName: INDEX,
    KeyConditionExpression: 'relatedObjectId = :p AND begins_with(objectId, :s)',
    ExpressionAttributeValues: { ':p': { S: key }, ':s': { S: prefix } },
    Limit: 1
  }))
  return answer.Items[0]?.objectId.S ?? null
}
