/*
 * A view of the graph: what its link says, and what the API gives for it. All that is drawn follows from the link.
 *
 *   #n=<id>&e=<id> <field> <pages>&s=<id>&h=<type or field>      n, e and h as often as need be
 */
import { askAllowed as ask } from '../api';
import { labelOf, readNode } from './types';

export const PAGE = 25;
const EMPTY = { roots: [], expansions: [], selected: null, hidden: [] };

export function readView(hash) {
  const parameters = new URLSearchParams(hash.slice(1));
  const expansions = parameters.getAll('e').flatMap((text) => {
    const [id, field, pages] = text.split(' ');
    return id && field ? [{ id, field, pages: Math.max(1, Number(pages) || 1) }] : [];
  });
  return {
    ...EMPTY,
    roots: parameters.getAll('n'),
    expansions,
    selected: parameters.get('s'),
    hidden: parameters.getAll('h'),
  };
}

export function writeView({ roots, expansions, selected, hidden }) {
  const parameters = new URLSearchParams();
  for (const id of roots) parameters.append('n', id);
  for (const { id, field, pages } of expansions) parameters.append('e', `${id} ${field} ${pages}`);
  if (selected) parameters.set('s', selected);
  for (const name of hidden) parameters.append('h', name);
  return `#${parameters}`;
}

/** Fetches nodes and pages, each once; what failed is asked for again. */
export class Source {
  constructor(api, headers) {
    this.api = api;
    this.headers = headers;
    this.kept = new Map();
    this.typeOf = new Map();
  }

  /** Read the nodes of ids; null where there is none. */
  async nodes(ids) {
    const found = await Promise.all(chunks(ids).map((some) => this.once(`nodes ${some}`, () => this.readNodes(some))));
    return { nodes: found.flatMap(({ nodes }) => nodes), errors: found.flatMap(({ errors }) => errors) };
  }

  // Types first: a query for the fields of all types at once is as long as the model is large.
  async readNodes(ids) {
    const unknown = ids.filter((id) => !this.typeOf.has(id));
    if (unknown.length) {
      const { data } = await ask(
        'query Types($ids: [ID!]!) { nodes(ids: $ids) { __typename } }',
        { ids: unknown },
        this.headers,
      );
      data.nodes.forEach((node, index) => node && this.typeOf.set(unknown[index], node.__typename));
    }
    const select = this.api.selectNodes(new Set(ids.map((id) => this.typeOf.get(id)).filter(Boolean)));
    if (!select) return { nodes: ids.map(() => null), errors: [] };
    const { data, errors } = await ask(
      `query Nodes($ids: [ID!]!) { nodes(ids: $ids) { ${select} } }`,
      { ids },
      this.headers,
    );
    return { nodes: data.nodes.map((raw) => readNode(raw, this.api)), errors };
  }

  /** Read a page of a relationship; of one that leads to one node, that is the page. */
  page({ id, type }, relationship, after = null) {
    const { name, isMany, select } = relationship;
    const declared = isMany ? '($id: ID!, $first: Int!, $after: String)' : '($id: ID!)';
    const query = `query Expand${declared} { node(id: $id) { ... on ${type} { ${name} ${select} } } }`;
    return this.once(`${id} ${name} ${after}`, async () => {
      const { data, errors } = await ask(query, { id, ...(isMany && { first: PAGE, after }) }, this.headers);
      return { ...this.read(data.node?.[name], isMany), errors };
    });
  }

  /** Find where to begin: by a root field. */
  async start({ name, args, isMany, select }, values, after = null) {
    const given = args.filter((arg) => values[arg.name] !== undefined);
    const paging = isMany ? ['$first: Int!', '$after: String'] : [];
    const declared = [...given.map((arg) => `$${arg.name}: ${arg.type}`), ...paging].join(', ');
    const passed = given.map((arg) => `${arg.name}: $${arg.name}`);
    const field = isMany
      ? `${name}${select.replace('(', `(${passed.map((each) => `${each}, `).join('')}`)}`
      : `${name}${passed.length ? `(${passed.join(', ')})` : ''} ${select}`;
    const query = `query Start${declared ? `(${declared})` : ''} { ${field} }`;
    const { data, errors } = await ask(query, { ...values, ...(isMany && { first: PAGE, after }) }, this.headers);
    const { items, more } = this.read(data[name], isMany);
    const nodes = items.flatMap(({ node }) => (node?.isNode ? [node] : []));
    for (const { id, type } of nodes) this.typeOf.set(id, type);
    return { nodes, more, errors };
  }

  read(value, isMany) {
    if (!value) return { items: [], more: null };
    if (!isMany) return { items: [{ node: readNode(value, this.api), values: {}, key: '' }], more: null };
    const items = value.edges.map(({ cursor, node, ...values }) => ({
      node: readNode(node, this.api),
      values,
      key: cursor,
    }));
    return { items, more: value.pageInfo.hasNextPage ? value.pageInfo.endCursor : null };
  }

  async once(key, read) {
    if (!this.kept.has(key)) {
      const reading = read();
      this.kept.set(key, reading);
      reading.then(
        ({ errors }) => errors.length && this.kept.delete(key),
        () => this.kept.delete(key),
      );
    }
    return this.kept.get(key);
  }
}

/**
 * Read all that a view shows.
 *
 * nodes: Map id → { id, type, label, values, from, expanded: { field → { shown, hasMore } } }
 * edges: Map id → { id, source, target, names: [field], items: [{ field, values, of }] }
 */
export async function load(view, source) {
  const graph = { nodes: new Map(), edges: new Map(), errors: [] };
  if (view.roots.length) {
    const { nodes, errors } = await source.nodes(view.roots);
    graph.errors.push(...errors);
    nodes.forEach((node, index) => {
      if (node?.isNode) addNode(graph, node, null);
      else graph.errors.push({ message: `There is no node with the id ${view.roots[index]} (any more).` });
    });
  }
  let waiting = view.expansions;
  while (waiting.length) {
    const ready = waiting.filter(({ id }) => graph.nodes.has(id));
    if (!ready.length) break;
    const found = await Promise.all(ready.map((expansion) => expand(expansion, graph, source)));
    found.forEach((pages, index) => merge(graph, ready[index], pages));
    waiting = waiting.filter((expansion) => !ready.includes(expansion));
  }
  return graph;
}

async function expand({ id, field, pages }, graph, source) {
  const node = graph.nodes.get(id);
  const relationship = source.api.types.get(node.type)?.relationships.find(({ name }) => name === field);
  if (!relationship)
    return { items: [], more: null, errors: [{ message: `${node.type} has no relationship ${field}.` }] };
  const all = { items: [], more: null, errors: [] };
  for (let page = 0; page < pages; page++) {
    const { items, more, errors } = await source.page(node, relationship, all.more);
    all.items.push(...items);
    all.errors.push(...errors);
    all.more = more;
    if (!more) break;
  }
  return all;
}

function merge(graph, { id, field }, { items, more, errors }) {
  graph.errors.push(...errors);
  let dangling = 0;
  for (const { node, values, key } of items) {
    if (!node) dangling += 1;
    else if (node.isNode) {
      addNode(graph, node, id);
      addEdge(graph, id, node.id, field, values, key);
    } else {
      addBetween(graph, id, field, node, key);
    }
  }
  graph.nodes.get(id).expanded[field] = { shown: items.length, hasMore: Boolean(more), dangling };
}

/** An item that is no node itself is an edge to the nodes at its other ends. */
function addBetween(graph, id, field, item, key) {
  const ends = Object.values(item.values).filter((value) => value?.__typename && value.id && value.id !== id);
  const values = Object.fromEntries(Object.entries(item.values).filter(([, value]) => !value?.__typename));
  for (const raw of ends) {
    const { __typename: type, id: end, ...own } = raw;
    addNode(graph, { id: end, type, values: own }, id);
    addEdge(graph, id, end, field, values, key, item.type);
  }
}

function addNode(graph, { id, type, values }, from) {
  if (graph.nodes.has(id)) return;
  graph.nodes.set(id, { id, type, values, label: labelOf({ type, values }), from, expanded: {} });
}

function addEdge(graph, source, target, field, values, key, of) {
  // The other direction of a relationship leads back along the same edge: one line, not two.
  const back = [...(graph.between?.get(pair(source, target)) ?? [])]
    .map((id) => graph.edges.get(id))
    .find(
      (edge) =>
        edge.source === target && edge.target === source && !edge.names.includes(field) && edge.names.length < 2,
    );
  const edge = graph.edges.get(`${source} ${field} ${target}`) ?? back ?? newEdge(graph, source, field, target);
  if (!edge.names.includes(field)) edge.names.push(field);
  if (!edge.items.some((item) => item.field === field && item.key === key)) edge.items.push({ field, values, key, of });
}

function newEdge(graph, source, field, target) {
  const edge = { id: `${source} ${field} ${target}`, source, target, names: [], items: [] };
  graph.edges.set(edge.id, edge);
  graph.between ??= new Map();
  const known = graph.between.get(pair(source, target)) ?? [];
  graph.between.set(pair(source, target), [...known, edge.id]);
  return edge;
}

function chunks(ids) {
  return Array.from({ length: Math.ceil(ids.length / PAGE) }, (_, index) =>
    ids.slice(index * PAGE, (index + 1) * PAGE),
  );
}

function pair(one, other) {
  return one < other ? `${one} ${other}` : `${other} ${one}`;
}
