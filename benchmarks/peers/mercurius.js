// Mercurius with its JIT and its loaders, on Fastify.

import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import mercurius from 'mercurius'
import { edges, nodes, parent } from './dynamo.js'
import { box, connection, container, ids, pageSize, pallet, readCursor } from './shapes.js'

function byNumber (prefix, shape) {
  return async queries => (await nodes(queries.map(({ params }) => prefix + params.number))).map(shape)
}

function byKey (shape) {
  return async queries => (await nodes(queries.map(({ obj }) => obj.key))).map(shape)
}

function page (prefix) {
  return queries => Promise.all(queries.map(async ({ obj, params }) => {
    const first = pageSize(params.first)
    return connection(await edges(obj.key, prefix, first, readCursor(params.after)), first)
  }))
}

function above (prefix, shape) {
  return async queries => {
    const keys = await Promise.all(queries.map(({ obj }) => parent(obj.key, prefix)))
    return (await nodes(keys)).map(shape)
  }
}

const loaders = {
  Query: {
    container: byNumber('CONTAINER_', container),
    pallet: byNumber('PALLET_', pallet),
    box: byNumber('BOX_', box)
  },
  Container: { pallets: page('PALLET_') },
  Pallet: { container: above('CONTAINER_', container), boxes: page('BOX_') },
  Box: { pallet: above('PALLET_', pallet) },
  ContainerPalletsEdge: { node: byKey(pallet) },
  PalletBoxesEdge: { node: byKey(box) }
}

const app = Fastify({ logger: false })
const schema = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8')
await app.register(mercurius, { schema, resolvers: ids, loaders, jit: 1, path: '/graphql' })
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
