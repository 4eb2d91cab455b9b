import type { Sink, SubscribePayload } from 'graphql-ws';
import {
  Environment,
  Network,
  Observable,
  RecordSource,
  Store,
  type FetchFunction,
  type GraphQLResponse,
  type SubscribeFunction,
} from 'relay-runtime';
import { API, socket } from '../../shared/api';

/** The compiler leaves the text out of what it has persisted, and sets the id. */
const ask: FetchFunction = async ({ id, name, text, operationKind }, variables) => {
  const response = await fetch(API, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/graphql-response+json, application/json' },
    body: JSON.stringify({ documentId: id ?? undefined, query: text ?? undefined, operationName: name, variables }),
  });
  const answer = await response.json();
  // Relay would show null where an error is. A query that has one goes to the error boundary, with the server's words.
  if (operationKind === 'query' && answer.errors) throw new Error(answer.errors[0].message);
  return answer;
};

/** graphql-ws insists on a `query`; the server takes an empty one as none. */
const follow: SubscribeFunction = ({ id, name, text }, variables) =>
  Observable.create<GraphQLResponse>((sink) =>
    socket.subscribe(
      { documentId: id ?? undefined, query: text ?? '', operationName: name, variables } as SubscribePayload,
      sink as Sink,
    ),
  );

export const environment = new Environment({
  network: Network.create(ask, follow),
  store: new Store(new RecordSource()),
});
