/* Requests to the server, and what can go wrong with them in words for a person. */
import { getLocation, Kind, parse, print, visit } from 'graphql';
import { config } from './config';

/** Something could not be had; `code` is the server's, or NETWORK or NOT_GRAPHQL. `isCallers`: headers may help. */
export class ApiError extends Error {
  constructor(message, code, status, errors = []) {
    super(message);
    this.code = code;
    this.errors = errors;
    this.isCallers = status === 401 || status === 403 || ['UNAUTHENTICATED', 'FORBIDDEN'].includes(code);
  }
}

/** Run an operation; give its data and the errors that came with it. Throws ApiError where there is no data. */
export async function ask(query, variables, headers) {
  const body = JSON.stringify({ query, variables });
  const {
    data,
    errors = [],
    status,
  } = await answerOf(config.endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...headers },
    body,
  });
  if (!data) throw refused(errors, status);
  return { data, errors };
}

/** Run a query without the fields that the caller may not ask for: a whole query is refused for one of them. */
export async function askAllowed(query, variables, headers) {
  try {
    return await ask(query, variables, headers);
  } catch (error) {
    const refused =
      error.errors?.filter(({ extensions }) => ['FORBIDDEN', 'UNAUTHENTICATED'].includes(extensions?.code)) ?? [];
    const left = refused.length === error.errors?.length && without(query, refused);
    if (!left) throw error;
    const { data, errors } = await ask(left, variables, headers);
    return { data, errors: [...refused, ...errors] };
  }
}

/** Take the fields at which errors point out of a document; null where none is left, or none was pointed at. */
function without(query, errors) {
  const places = new Set(
    errors.flatMap(({ locations = [] }) => locations.map(({ line, column }) => `${line}:${column}`)),
  );
  const document = parse(query);
  const isPlace = ({ loc }) => {
    const { line, column } = getLocation(document.loc.source, loc.start);
    return places.has(`${line}:${column}`);
  };
  const leave = (node) => (node.selectionSet && !node.selectionSet.selections.length ? null : undefined);
  const left = visit(document, {
    [Kind.FIELD]: { enter: (node) => (isPlace(node) ? null : undefined), leave },
    [Kind.INLINE_FRAGMENT]: { leave },
    [Kind.OPERATION_DEFINITION]: { leave },
  });
  return left.definitions.length && places.size ? print(left) : null;
}

/** Read the model's outline. */
export async function readOutline(headers) {
  const { status, errors, ...outline } = await answerOf(config.outline, { headers });
  if (errors || status !== 200) throw refused(errors ?? [], status);
  return outline;
}

function refused(errors, status) {
  const [error] = errors;
  const message = error?.message ?? `The server answered with HTTP ${status}, and no data.`;
  return new ApiError(message, error?.extensions?.code, status, errors);
}

async function answerOf(url, init) {
  let response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error.name === 'TypeError' && error.message.includes('headers')) throw error;
    const where = new URL(url, location.href);
    throw new ApiError(
      `${where.origin} does not answer: see whether the server still runs, then try again.`,
      'NETWORK',
    );
  }
  try {
    return { ...(await response.json()), status: response.status };
  } catch {
    throw new ApiError(
      `Expected JSON from ${url}, got HTTP ${response.status} with something else.`,
      'NOT_GRAPHQL',
      response.status,
    );
  }
}
