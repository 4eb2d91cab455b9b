import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { relayStylePagination } from '@apollo/client/utilities';
import type { DocumentNode } from 'graphql';
import type { Client } from 'graphql-ws';
import { API, socket } from '../../shared/api';

/** Ids are global, so an id alone tells two objects apart; what has none is kept with what it came with. */
const cache = new InMemoryCache({
  dataIdFromObject: ({ id }) => (typeof id === 'string' ? id : undefined),
  typePolicies: {
    Query: { fields: { containers: relayStylePagination(['where']) } },
    Container: { fields: { pallets: relayStylePagination(['where', 'order']) } },
    Pallet: { fields: { boxes: relayStylePagination(['where', 'order']) } },
  },
});

const http = new HttpLink({ uri: API });

/** Sends documents as their text. */
const link = (follow: Client) =>
  ApolloLink.split(({ operationType }) => operationType === 'subscription', new GraphQLWsLink(follow), http);

/** Names documents by the hashes that the generator wrote, and sends no text. */
const named = () =>
  ApolloLink.from([
    new PersistedQueryLink({ generateHash: (document) => (document as Generated).__meta__.hash }),
    // graphql-ws insists on a `query`; the server takes an empty one as none.
    link({ ...socket, subscribe: (named, sink) => socket.subscribe({ ...named, query: '' }, sink) }),
  ]);

type Generated = DocumentNode & { __meta__: { hash: string } };

export const client = new ApolloClient({ cache, link: import.meta.env.MODE === 'persisted' ? named() : link(socket) });
