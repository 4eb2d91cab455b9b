// The five answers by hand: Node's HTTP server and a thin client, without GraphQL.

import { createServer } from 'node:http'
import { Table } from './thin.js'

const INDEX = 'reverse-lookup-index'
const BOXES = [1, 2, 3, 4, 5].flatMap(pallet => Array.from({ length: 10 }, (_, box) =>
  `C00100${pallet}${String(box + 1).padStart(2, '0')}`
))
const CONTAINERS = Array.from({ length: 10 }, (_, number) => String(number + 1).padStart(6, '0'))

const table = new Table({
  endpoint: process.env.AWS_ENDPOINT_URL_DYNAMODB,
  region: process.env.AWS_REGION,
  access: process.env.AWS_ACCESS_KEY_ID,
  secret: process.env.AWS_SECRET_ACCESS_KEY,
  name: process.env.TABLE
})

const packed = value => Buffer.from(JSON.stringify(value)).toString('base64url')
const text = value => value === undefined ? null : value.S
const below = edge => edge.relatedObjectId.S

async function container (number) {
  const item = await table.node(`CONTAINER_${number}`)
  return item ? { id: packed(['Container', `CONTAINER_${number}`]), number, operator: text(item.Operator) } : null
}

async function fullContainer (number, pallets, boxes) {
  const { item, edges } = await table.withEdges(`CONTAINER_${number}`, 'PALLET_', pallets)
  if (!item) return null
  const keys = edges.map(below)
  const [nodes, ...pages] = await Promise.all([table.nodes(keys), ...keys.map(key => table.edges(key, 'BOX_', boxes))])
  const found = await table.nodes(pages.flat().map(below))
  const answers = edges.map((edge, place) => {
    const answer = palletEdge(edge, nodes)
    if (answer.node) answer.node.boxes = { edges: pages[place].map(entry => boxEdge(entry, found)) }
    return answer
  })
  return { number, pallets: { edges: answers } }
}

async function boxesWithOperators (numbers) {
  const boxes = numbers.map(number => `BOX_${number}`)
  const [found, ...pallets] = await Promise.all([
    table.nodes(boxes),
    ...boxes.map(key => table.parent(key, 'PALLET_', INDEX))
  ])
  const unique = [...new Set(pallets)].filter(pallet => pallet)
  const parents = await Promise.all(unique.map(key => table.parent(key, 'CONTAINER_', INDEX)))
  const containers = await table.nodes(parents.filter(key => key))
  const operators = new Map(unique.map((pallet, place) => {
    const item = containers.get(parents[place])
    return [pallet, item ? { operator: text(item.Operator) } : null]
  }))
  return Object.fromEntries(numbers.map((number, place) => {
    const pallet = pallets[place]
    const above = pallet ? { number: pallet.slice(7), container: operators.get(pallet) } : null
    return [`b${number}`, found.has(boxes[place]) ? { number, pallet: above } : null]
  }))
}

async function firstPallets (number, pallets) {
  const { item, edges } = await table.withEdges(`CONTAINER_${number}`, 'PALLET_', pallets + 1)
  if (!item) return null
  const shown = edges.slice(0, pallets)
  const nodes = await table.nodes(shown.map(below))
  const answers = shown.map(edge => ({ ...palletEdge(edge, nodes), cursor: packed([1, 'edges', [below(edge)]]) }))
  const pageInfo = { hasNextPage: edges.length > pallets, endCursor: answers.at(-1)?.cursor ?? null }
  return { pallets: { edges: answers, pageInfo } }
}

async function palletsOfContainers (numbers, pallets) {
  const pages = await Promise.all(numbers.map(number => table.withEdges(`CONTAINER_${number}`, 'PALLET_', pallets)))
  const nodes = await table.nodes(pages.flatMap(({ edges }) => edges.map(below)))
  return Object.fromEntries(pages.map(({ item, edges }, place) =>
    [`c${numbers[place]}`, item ? { pallets: { edges: edges.map(edge => palletEdge(edge, nodes)) } } : null]
  ))
}

function palletEdge (edge, nodes) {
  const item = nodes.get(below(edge))
  const node = item
    ? { number: below(edge).slice(7), origin: text(item.Origin), destination: text(item.Destination) }
    : null
  return { linkedBy: text(edge.LinkedBy), linkedDatetime: text(edge.LinkedDatetime), node }
}

function boxEdge (edge, nodes) {
  const item = nodes.get(below(edge))
  const node = item
    ? {
        number: below(edge).slice(4),
        weightInKg: item.WeightInKg ? Number(item.WeightInKg.N) : null,
        isDangerous: item.IsDangerous?.BOOL ?? null
      }
    : null
  return { linkedBy: text(edge.LinkedBy), node }
}

const ANSWERS = {
  q1: async () => ({ container: await container('000001') }),
  q2: async () => ({ container: await fullContainer('000001', 20, 15) }),
  q3: () => boxesWithOperators(BOXES),
  q4: async () => ({ container: await firstPallets('000001', 10) }),
  q5: () => palletsOfContainers(CONTAINERS, 20)
}

async function answer (body) {
  const { operationName } = JSON.parse(body)
  return JSON.stringify({ data: await ANSWERS[operationName]() })
}

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => answer(Buffer.concat(chunks)).then(
    json => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) })
      response.end(json)
    },
    error => {
      response.writeHead(500)
      response.end(String(error))
    }
  ))
})
server.listen(Number(process.env.PORT), '127.0.0.1')
