/* A GraphQL document, changed by choosing fields: the text of an operation is written anew, all else stays as it is. */
import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isRequiredArgument,
  Kind,
  parse,
  parseValue,
  print,
} from 'graphql';

/** Read a document; null where it is none. */
export function readDocument(text) {
  if (!text.replace(/#.*$/gm, '').trim()) return { definitions: [] };
  try {
    return parse(text);
  } catch {
    return null;
  }
}

/** Find the operation of a kind to change: the one with the name, else the first. */
export function operationOf(document, kind, name) {
  const all = document.definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION && each.operation === kind);
  return all.find((each) => each.name?.value === name) ?? all[0];
}

/** Put a changed operation into the text in the place of what it was; a new one goes to the end, an empty one away. */
export function written(text, old, changed) {
  const isEmpty = !changed.selectionSet.selections.length;
  const operation = isEmpty ? '' : print(changed);
  if (old) return text.slice(0, old.loc.start) + operation + text.slice(old.loc.end);
  return isEmpty ? text : [text.trimEnd(), operation].filter(Boolean).join('\n\n');
}

export function newOperation(kind) {
  const name = `My${kind[0].toUpperCase()}${kind.slice(1)}`;
  return {
    kind: Kind.OPERATION_DEFINITION,
    operation: kind,
    name: named(name),
    selectionSet: { kind: Kind.SELECTION_SET, selections: [] },
  };
}

export function fieldIn(parent, name) {
  return parent?.selectionSet?.selections.find((each) => each.kind === Kind.FIELD && each.name.value === name);
}

export function fragmentIn(parent, typeName) {
  return parent?.selectionSet?.selections.find(
    (each) => each.kind === Kind.INLINE_FRAGMENT && each.typeCondition?.name.value === typeName,
  );
}

/** Give the parent with one selection in the place of another; `changed` null: without it, `old` absent: besides. */
export function withSelection(parent, old, changed) {
  const selections = parent.selectionSet?.selections ?? [];
  const next = old ? selections.flatMap((each) => (each === old ? (changed ?? []) : each)) : [...selections, changed];
  return { ...parent, selectionSet: next.length || !old ? selectionSet(next) : emptied(parent) };
}

// What had fields and has none left keeps its place in the query.
function emptied(parent) {
  return parent.kind === Kind.OPERATION_DEFINITION ? selectionSet([]) : selectionSet([plain('__typename')]);
}

/** Make the selection of a field, with what it cannot do without: values of required arguments, and a field inside. */
export function selectionOf(field, depth = 0) {
  const type = getNamedType(field.type);
  return {
    ...plain(field.name),
    arguments: field.args.filter(isRequiredArgument).map((arg) => argumentOf(arg)),
    ...(isCompositeType(type) && { selectionSet: selectionSet([firstOf(type, depth)]) }),
  };
}

export function fragmentOf(type) {
  return {
    kind: Kind.INLINE_FRAGMENT,
    typeCondition: namedType(type.name),
    selectionSet: selectionSet([firstOf(type, 0)]),
  };
}

function firstOf(type, depth) {
  const fields = type.getFields ? Object.values(type.getFields()) : [];
  const can = (field) => !field.args.some(isRequiredArgument);
  const leaf =
    fields.find(({ name }) => name === 'id') ??
    fields.find((field) => can(field) && isLeafType(getNamedType(field.type)));
  const inside = fields.find(({ name }) => name === 'nodes') ?? fields.find(({ name }) => name === 'node');
  if (inside && depth < 2) return selectionOf(inside, depth + 1);
  return leaf && !isAbstractType(type) ? plain(leaf.name) : plain(leaf?.name ?? '__typename');
}

export function withArgument(field, name, argument) {
  const others = (field.arguments ?? []).filter((each) => each.name.value !== name);
  return { ...field, arguments: argument ? [...others, argument] : others };
}

/** Make an argument with a value to begin with. */
export function argumentOf({ name, type }, value = beginning(type)) {
  return { kind: Kind.ARGUMENT, name: named(name), value };
}

function beginning(type) {
  const bare = getNullableType(type);
  if (isListType(bare)) return { kind: Kind.LIST, values: [] };
  if (isInputObjectType(bare)) return { kind: Kind.OBJECT, fields: [] };
  if (isEnumType(bare)) return { kind: Kind.ENUM, value: bare.getValues()[0].name };
  if (bare.name === 'Int' || bare.name === 'Float') return { kind: Kind.INT, value: bare.name === 'Int' ? '10' : '0' };
  if (bare.name === 'Boolean') return { kind: Kind.BOOLEAN, value: true };
  return { kind: Kind.STRING, value: '' };
}

const LITERALS = ['Int', 'Float', 'Boolean', 'JSON'];

/** Say whether a person writes the value of a type as bare text, and not as GraphQL. */
export function isText(type) {
  const bare = getNullableType(type);
  return isLeafType(bare) && !isEnumType(bare) && !LITERALS.includes(bare.name);
}

export function shownValue(value, type) {
  return isText(type) && value.kind === Kind.STRING ? value.value : print(value);
}

/** Read a value as a person has written it; null where it is none. */
export function valueOf(text, type) {
  if (isText(type) && !/^\$[A-Za-z_]\w*$/.test(text)) return { kind: Kind.STRING, value: text };
  try {
    return parseValue(text);
  } catch {
    return null;
  }
}

function selectionSet(selections) {
  return { kind: Kind.SELECTION_SET, selections };
}

function plain(name) {
  return { kind: Kind.FIELD, name: named(name) };
}

function named(value) {
  return { kind: Kind.NAME, value };
}

function namedType(name) {
  return { kind: Kind.NAMED_TYPE, name: named(name) };
}
