// A thin client for the reads of DynamoDB: undici's connections, SigV4 and JSON, nothing else.

import { createHash, createHmac } from 'node:crypto'
import { Pool } from 'undici'

const KEYS_IN_A_BATCH = 100
const SIGNED = 'host;x-amz-date;x-amz-target'

const sha256 = text => createHash('sha256').update(text).digest('hex')
const hmac = (key, text) => createHmac('sha256', key).update(text).digest()
const nodeKey = key => ({ objectId: { S: key }, relatedObjectId: { S: key } })

export class Table {
  #pool
  #host
  #name
  #region
  #access
  #secret
  #second = 0
  #stamp = ''
  #scope = ''
  #key

  constructor ({ endpoint, region, access, secret, name, connections = 64 }) {
    this.#pool = new Pool(endpoint, { connections, pipelining: 1 })
    this.#host = new URL(endpoint).host
    this.#name = name
    this.#region = region
    this.#access = access
    this.#secret = secret
  }

  async node (key) {
    return (await this.#call('GetItem', { TableName: this.#name, Key: nodeKey(key) })).Item
  }

  // Give the nodes of these keys by key, read as many in a request as DynamoDB takes.
  async nodes (keys) {
    const unique = [...new Set(keys)]
    const batches = []
    for (let start = 0; start < unique.length; start += KEYS_IN_A_BATCH) {
      batches.push(this.#batch(unique.slice(start, start + KEYS_IN_A_BATCH)))
    }
    const found = new Map()
    for (const batch of await Promise.all(batches)) {
      for (const item of batch) found.set(item.objectId.S, item)
    }
    return found
  }

  // Read a node and its first edges to nodes that begin so: they lie side by side.
  async withEdges (key, prefix, limit) {
    const found = await this.#query('objectId = :p AND relatedObjectId BETWEEN :p AND :s', key, `${prefix}\u{10ffff}`, limit + 1)
    if (found[0]?.relatedObjectId.S === key) return { item: found[0], edges: found.slice(1) }
    return { item: null, edges: found.slice(0, limit) }
  }

  edges (key, prefix, limit) {
    return this.#query('objectId = :p AND begins_with(relatedObjectId, :s)', key, prefix, limit)
  }

  // Give the key of the node that a node hangs on.
  async parent (key, prefix, index) {
    const found = await this.#query('relatedObjectId = :p AND begins_with(objectId, :s)', key, prefix, 1, index)
    return found[0]?.objectId.S ?? null
  }

  async #query (condition, partition, sort, limit, index) {
    const answer = await this.#call('Query', {
      TableName: this.#name,
      IndexName: index,
      KeyConditionExpression: condition,
      ExpressionAttributeValues: { ':p': { S: partition }, ':s': { S: sort } },
      Limit: limit
    })
    return answer.Items
  }

  async #batch (keys) {
    const items = []
    let wanted = { [this.#name]: { Keys: keys.map(nodeKey) } }
    while (wanted && Object.keys(wanted).length > 0) {
      const answer = await this.#call('BatchGetItem', { RequestItems: wanted })
      items.push(...answer.Responses[this.#name] ?? [])
      wanted = answer.UnprocessedKeys
    }
    return items
  }

  async #call (operation, parameters) {
    const body = JSON.stringify(parameters)
    const answer = await this.#pool.request({
      method: 'POST',
      path: '/',
      headers: this.#signed(`DynamoDB_20120810.${operation}`, body),
      body
    })
    const text = await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(text)
    return JSON.parse(text)
  }

  // Give the headers with their signature, by AWS Signature Version 4.
  #signed (target, body) {
    this.#tick()
    const canonical = `POST\n/\n\nhost:${this.#host}\nx-amz-date:${this.#stamp}\nx-amz-target:${target}\n\n${SIGNED}\n${sha256(body)}`
    const text = `AWS4-HMAC-SHA256\n${this.#stamp}\n${this.#scope}\n${sha256(canonical)}`
    const signature = hmac(this.#key, text).toString('hex')
    return {
      host: this.#host,
      'x-amz-date': this.#stamp,
      'x-amz-target': target,
      authorization: `AWS4-HMAC-SHA256 Credential=${this.#access}/${this.#scope}, SignedHeaders=${SIGNED}, Signature=${signature}`,
      'content-type': 'application/x-amz-json-1.0'
    }
  }

  // Write what stays for a second: the time; and for a day: the key.
  #tick () {
    const now = Math.floor(Date.now() / 1000)
    if (now === this.#second) return
    this.#second = now
    this.#stamp = new Date(now * 1000).toISOString().replace(/[-:]|\.\d+/g, '')
    const scope = `${this.#stamp.slice(0, 8)}/${this.#region}/dynamodb/aws4_request`
    if (scope === this.#scope) return
    this.#scope = scope
    this.#key = scope.split('/').reduce(hmac, `AWS4${this.#secret}`)
  }
}
