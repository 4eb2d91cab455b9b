// Apollo Server, standalone, with dataloader.

import { readFileSync } from 'node:fs'
import { ApolloServer } from '@apollo/server'
import { startStandaloneServer } from '@apollo/server/standalone'
import DataLoader from 'dataloader'
import { edges, nodes, parent } from './dynamo.js'
import { box, connection, container, ids, pageSize, pallet, readCursor } from './shapes.js'

function page (prefix) {
  return ({ key }, { first, after }, { pages }) => pages.load({ key, prefix, first: pageSize(first), after })
}

function above (prefix, shape) {
  return async ({ key }, _, { nodes, parents }) => {
    const found = await parents.load({ key, prefix })
    return found && shape(await nodes.load(found))
  }
}

function byKey (shape) {
  return async ({ key }, _, { nodes }) => shape(await nodes.load(key))
}

function byNumber (prefix, shape) {
  return async (_, { number }, { nodes }) => shape(await nodes.load(prefix + number))
}

const resolvers = {
  Query: {
    container: byNumber('CONTAINER_', container),
    pallet: byNumber('PALLET_', pallet),
    box: byNumber('BOX_', box)
  },
  Container: { ...ids.Container, pallets: page('PALLET_') },
  Pallet: { ...ids.Pallet, container: above('CONTAINER_', container), boxes: page('BOX_') },
  Box: { ...ids.Box, pallet: above('PALLET_', pallet) },
  ContainerPalletsEdge: { node: byKey(pallet) },
  PalletBoxesEdge: { node: byKey(box) }
}

// Loaders live as long as one request.
async function context () {
  return {
    nodes: new DataLoader(nodes),
    parents: new DataLoader(
      keys => Promise.all(keys.map(({ key, prefix }) => parent(key, prefix))),
      { cacheKeyFn: ({ key, prefix }) => `${key} ${prefix}` }
    ),
    pages: new DataLoader(
      keys => Promise.all(keys.map(async ({ key, prefix, first, after }) =>
        connection(await edges(key, prefix, first, readCursor(after)), first)
      )),
      { cacheKeyFn: ({ key, prefix, first, after }) => `${key} ${prefix} ${first} ${after ?? ''}` }
    )
  }
}

const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8')
const server = new ApolloServer({ typeDefs, resolvers })
await startStandaloneServer(server, { context, listen: { host: '127.0.0.1', port: Number(process.env.PORT) } })
