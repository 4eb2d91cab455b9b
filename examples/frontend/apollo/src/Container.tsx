import type { ApolloCache } from '@apollo/client';
import { useSubscription, useSuspenseQuery } from '@apollo/client/react';
import { useTransition } from 'react';
import { linkTo } from '../../shared/route';
import { Moment } from '../../shared/ui';
import { graphql } from './__generated__';
import type { ContainerQuery, PalletsChangedSubscription } from './__generated__/graphql';

const CONTAINER = graphql(`
  query Container($number: ID!, $first: Int!, $after: String) {
    container(number: $number) {
      id
      operator
      pallets(first: $first, after: $after) {
        edges {
          cursor
          ...Loading
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }

  fragment Loading on ContainerPalletsEdge {
    linkedBy
    linkedAtLocation
    linkedDatetime
    node {
      id
      number
      origin
      destination
    }
  }
`);

const PALLETS_CHANGED = graphql(`
  subscription PalletsChanged($id: ID!) {
    containerPalletsChanged(id: $id) {
      nodeId
      edge {
        cursor
        ...Loading
      }
    }
  }
`);

/** A container, and how its pallets came into it: the fields of the edges. */
export function Container({ number, selected }: { number: string; selected?: string }) {
  const { data, fetchMore } = useSuspenseQuery(CONTAINER, { variables: { number, first: 10 } });
  const [isLoading, startLoading] = useTransition();
  const container = data.container;
  // Keeps the list as it is on the server: pallets that anybody loads or unloads come and go.
  useSubscription(PALLETS_CHANGED, {
    variables: { id: container?.id ?? '' },
    skip: !container,
    onData: ({ client, data: { data } }) => data && apply(client.cache, number, data.containerPalletsChanged),
  });
  if (!container) return <p className="error">There is no container {number}.</p>;
  const { edges, pageInfo } = container.pallets;
  return (
    <>
      <h2>Container {number}</h2>
      <p className="about">{container.operator}</p>
      <table>
        <thead>
          <tr>
            <th>Pallet</th>
            <th>Way</th>
            <th>Loaded by</th>
            <th>At</th>
            <th>On</th>
          </tr>
        </thead>
        <tbody>
          {edges.map(
            ({ node, linkedBy, linkedAtLocation, linkedDatetime }) =>
              node && (
                <tr key={node.id} className={node.number === selected ? 'chosen' : undefined}>
                  <th scope="row">
                    <a href={linkTo(number, node.number)}>{node.number}</a>
                  </th>
                  <td>{`${node.origin ?? '?'} → ${node.destination ?? '?'}`}</td>
                  <td>{linkedBy}</td>
                  <td>{linkedAtLocation}</td>
                  <td>
                    <Moment of={linkedDatetime} />
                  </td>
                </tr>
              ),
          )}
        </tbody>
      </table>
      {pageInfo.hasNextPage && (
        <button
          className="more"
          disabled={isLoading}
          onClick={() => startLoading(async () => void (await fetchMore({ variables: { after: pageInfo.endCursor } })))}
        >
          More
        </button>
      )}
    </>
  );
}

type Edge = NonNullable<ContainerQuery['container']>['pallets']['edges'][number];

function apply(cache: ApolloCache, number: string, change: PalletsChangedSubscription['containerPalletsChanged']) {
  cache.updateQuery({ query: CONTAINER, variables: { number, first: 10 }, overwrite: true }, (data) => {
    if (!data?.container) return data;
    const { edges, pageInfo } = data.container.pallets;
    const pallets = { ...data.container.pallets, edges: applied(edges, change, pageInfo.hasNextPage) };
    return { ...data, container: { ...data.container, pallets } };
  });
}

function applied(
  edges: Edge[],
  { nodeId, edge }: PalletsChangedSubscription['containerPalletsChanged'],
  hasNextPage: boolean,
): Edge[] {
  const index = edges.findIndex(({ node }) => node?.id === nodeId);
  if (!edge) return edges.filter(({ node }) => node?.id !== nodeId);
  if (index >= 0) return edges.with(index, edge);
  // The list is in the order of the pallets' numbers. What lies behind its last page comes with the next one.
  const next = edges.findIndex(({ node }) => (node?.number ?? '') > (edge.node?.number ?? ''));
  if (next >= 0) return edges.toSpliced(next, 0, edge);
  return hasNextPage ? edges : [...edges, edge];
}
