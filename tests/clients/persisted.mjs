/*
 * Asks one query twice by a client of npm that names it by its hash, and tells on standard output, a line of JSON for
 * each, what it sent ([method, whether the text was sent along]) and what it was answered.
 *
 *   node persisted.mjs apollo|apollo-get|urql URL QUERY VARIABLES
 */
import { createHash } from 'node:crypto';
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { createPersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { Client, fetchExchange } from '@urql/core';
import { persistedExchange } from '@urql/exchange-persisted';

const [kind, url, query, variables] = process.argv.slice(2);
const say = (value) => console.log(JSON.stringify(value));
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

const told = async (target, options) => {
  const { searchParams } = new URL(target);
  const isTold = options.method === 'GET' ? searchParams.has('query') : 'query' in JSON.parse(options.body);
  say([options.method, isTold]);
  return fetch(target, options);
};

const apollo = (useGETForHashedQueries) => {
  const client = new ApolloClient({
    link: ApolloLink.from([
      createPersistedQueryLink({ sha256, useGETForHashedQueries }),
      new HttpLink({ uri: url, fetch: told }),
    ]),
    cache: new InMemoryCache(),
  });
  return (query, variables) => client.query({ query: gql(query), variables, fetchPolicy: 'network-only' });
};

const urql = () => {
  const client = new Client({ url, fetch: told, exchanges: [persistedExchange(), fetchExchange] });
  return (query, variables) => client.query(query, variables).toPromise();
};

const ask = { apollo: () => apollo(false), 'apollo-get': () => apollo(true), urql }[kind]();
for (const _ of [1, 2]) {
  const { data, error } = await ask(query, JSON.parse(variables));
  say(data ?? { error: String(error) });
}
