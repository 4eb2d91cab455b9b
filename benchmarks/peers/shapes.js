// Items of the table as the API's objects.

const PAGE_SIZE = 50

function text (value) {
  return value === undefined ? null : value.S
}

function globalId (type, key) {
  return Buffer.from(JSON.stringify([type, key])).toString('base64url')
}

function writeCursor (edge) {
  return Buffer.from(JSON.stringify([1, 'edges', [edge.relatedObjectId.S]])).toString('base64url')
}

export function readCursor (cursor) {
  return cursor && JSON.parse(Buffer.from(cursor, 'base64url'))[2][0]
}

export function container (item) {
  return item && {
    key: item.objectId.S,
    number: item.objectId.S.slice('CONTAINER_'.length),
    operator: text(item.Operator)
  }
}

export function pallet (item) {
  return item && {
    key: item.objectId.S,
    number: item.objectId.S.slice('PALLET_'.length),
    origin: text(item.Origin),
    destination: text(item.Destination)
  }
}

export function box (item) {
  return item && {
    key: item.objectId.S,
    number: item.objectId.S.slice('BOX_'.length),
    weightInKg: item.WeightInKg ? Number(item.WeightInKg.N) : null,
    isDangerous: item.IsDangerous?.BOOL ?? null
  }
}

function edge (item) {
  return {
    key: item.relatedObjectId.S,
    cursor: writeCursor(item),
    linkedDatetime: text(item.LinkedDatetime),
    linkedBy: text(item.LinkedBy),
    linkedAtLocation: text(item.LinkedAtLocation)
  }
}

export function connection (items, first) {
  const edges = items.slice(0, first).map(edge)
  return { edges, pageInfo: { hasNextPage: items.length > first, endCursor: edges.at(-1)?.cursor ?? null } }
}

export const pageSize = first => first ?? PAGE_SIZE

export const ids = {
  Container: { id: ({ key }) => globalId('Container', key) },
  Pallet: { id: ({ key }) => globalId('Pallet', key) },
  Box: { id: ({ key }) => globalId('Box', key) }
}
