/* What the API can be asked, read from its introspection: nothing is known here that any client could not know. */
import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  isAbstractType,
  isEnumType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';

const PAGING = ['first', 'after', 'last', 'before', 'where', 'order'];
const DEPTH = 2;

export const INTROSPECTION = getIntrospectionQuery();

/**
 * types:  Map of each node type's name → { name, relationships: [{ name, isMany, description, select }] }
 * starts: [{ kind: search | lookup | list, name, args, description, isMany, select }]
 *
 * `select` is the selection of the field, with $first and $after for a page of many; `selectNodes` gives that of nodes
 * of these types.
 */
export function readApi(introspection) {
  const schema = buildClientSchema(introspection);
  const node = schema.getType('Node');
  const isNode = (type) => isObjectType(type) && type.getInterfaces().includes(node);
  const reader = { schema, isNode };
  const nodes = schema.getPossibleTypes(node);
  const types = new Map(nodes.map((type) => [type.name, describe(reader, type)]));
  const starts = Object.values(schema.getQueryType().getFields())
    .filter(({ name }) => !['node', 'nodes'].includes(name))
    .flatMap((field) => startOf(reader, field));
  const selectNodes = (names) =>
    names.size &&
    nodeSelection(
      reader,
      nodes.filter(({ name }) => names.has(name)),
    );
  return { types, starts, selectNodes };
}

function describe(reader, type) {
  const relationships = Object.values(type.getFields())
    .filter((field) => !field.args.some(isRequiredArgument))
    .flatMap((field) => {
      const found = relationshipOf(reader, field);
      return found ? [{ name: field.name, description: field.description, ...found }] : [];
    });
  return { name: type.name, description: type.description, relationships };
}

/** Read where a field leads to; null where that is no node. */
function relationshipOf(reader, field) {
  if (isListType(getNullableType(field.type))) return null;
  const type = getNamedType(field.type);
  const targets = targetsOf(reader, type);
  if (targets) return { isMany: false, targets: targets.map(String), select: `{ ${nodeSelection(reader, targets)} }` };
  const edge = edgeOf(type);
  const ends = edge && targetsOf(reader, getNamedType(edge.getFields().node.type), true);
  if (!ends) return null;
  const own = leavesOf(edge, DEPTH, ['node', 'cursor']);
  const node = `node { ${nodeSelection(reader, ends)} }`;
  const edges = `edges { cursor ${own} ${node} }`;
  const select = `(first: $first, after: $after) { ${edges} pageInfo { hasNextPage endCursor } }`;
  return { isMany: true, targets: ends.map(String), select };
}

function edgeOf(type) {
  const fields = isObjectType(type) ? type.getFields() : {};
  const edge = fields.edges && fields.pageInfo && getNamedType(fields.edges.type);
  return edge && isObjectType(edge) && edge.getFields().node ? edge : null;
}

/** List the types at a field's end, if all of them are nodes; or, where asked for, items that lie between nodes. */
function targetsOf({ schema, isNode }, type, orBetween = false) {
  const targets = isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
  const fit = (target) => isNode(target) || (orBetween && isObjectType(target) && endsOf({ isNode }, target).length);
  return targets.length && targets.every(fit) ? targets : null;
}

/** List the fields by which an item that is no node itself names the nodes at its ends. */
function endsOf({ isNode }, type) {
  return Object.values(type.getFields()).filter(
    (field) => !isListType(getNullableType(field.type)) && isNode(getNamedType(field.type)),
  );
}

function nodeSelection(reader, types) {
  const differing = namesOfSeveralTypes(types);
  const selections = types.map((type) => {
    // Fields of one name and several types need names of their own, for a document with both is not valid else.
    const rename = (name) => (differing.has(name) ? `${type}__${name}: ${name}` : name);
    if (reader.isNode(type)) return `... on ${type} { id ${leavesOf(type, DEPTH, ['id'], rename)} }`;
    const ends = endsOf(reader, type).map(
      (field) => `${rename(field.name)} { ${nodeSelection(reader, [getNamedType(field.type)])} }`,
    );
    return `... on ${type} { ${leavesOf(type, DEPTH, [], rename)} ${ends.join(' ')} }`;
  });
  return `__typename ${selections.join(' ')}`;
}

function namesOfSeveralTypes(types) {
  const found = new Map();
  for (const type of types) {
    for (const { name, type: of } of Object.values(type.getFields())) {
      found.set(name, (found.get(name) ?? new Set()).add(String(of)));
    }
  }
  return new Set([...found].filter(([, kinds]) => kinds.size > 1).map(([name]) => name));
}

/** Select the values of a type, those inside of maps too. */
function leavesOf(type, depth, without = [], rename = (name) => name) {
  return Object.values(type.getFields())
    .filter((field) => !without.includes(field.name) && !field.args.some(isRequiredArgument))
    .flatMap((field) => {
      const named = getNamedType(field.type);
      if (isLeafType(named)) return [rename(field.name)];
      if (depth === 1 || !isMap(named)) return [];
      const inside = leavesOf(named, depth - 1);
      return inside ? [`${rename(field.name)} { ${inside} }`] : [];
    })
    .join(' ');
}

/** Tell a map inside an item from what is an item of its own. */
function isMap(type) {
  if (!isObjectType(type)) return false;
  const fields = Object.values(type.getFields());
  return fields.every(({ name, args, type: of }) => !args.length && name !== 'id' && isLeafType(getNamedType(of)));
}

function startOf(reader, field) {
  const args = field.args
    .filter(({ name }) => !PAGING.includes(name))
    .map((arg) => ({
      name: arg.name,
      type: String(arg.type),
      isRequired: isRequiredArgument(arg),
      isJson: !isLeafType(getNullableType(arg.type)),
      isNumber: /^(Int|Float)!?$/.test(String(arg.type)),
      isBoolean: /^Boolean!?$/.test(String(arg.type)),
      values: isEnumType(getNullableType(arg.type))
        ? getNullableType(arg.type)
            .getValues()
            .map(({ name }) => name)
        : null,
      description: arg.description,
    }));
  const found = relationshipOf(reader, field);
  if (!found) return [];
  const isSearch = found.isMany && args.length === 1 && args[0].name === 'text' && args[0].isRequired;
  const kind = isSearch ? 'search' : found.isMany ? 'list' : 'lookup';
  return [{ kind, name: field.name, description: field.description, args, ...found }];
}

/** Take the aliases off a node, and what is not a value of it. */
export function readNode(raw, api) {
  if (!raw) return null;
  const prefix = `${raw.__typename}__`;
  const entries = Object.entries(raw).map(([key, value]) => [
    key.startsWith(prefix) ? key.slice(prefix.length) : key,
    value,
  ]);
  const fields = Object.fromEntries(entries);
  const { __typename: type, id, ...values } = fields;
  return { type, id, values, isNode: api.types.has(type) && Boolean(id) };
}

const NAMES = [/^(name|title|label|displayName)$/i, /name$|title$/i, /^(number|code|key|slug|email)$/i];

/** Name a node for a person. */
export function labelOf({ type, values }) {
  const texts = Object.entries(values).filter(
    ([, value]) => ['string', 'number'].includes(typeof value) && value !== '',
  );
  for (const pattern of NAMES) {
    const found = texts.find(([name]) => pattern.test(name));
    if (found) return String(found[1]);
  }
  return texts.length ? String(texts[0][1]) : type;
}
