import { useMemo } from 'react';
import { graphql, useLazyLoadQuery, usePaginationFragment, useSubscription } from 'react-relay';
import { ConnectionHandler, type RecordProxy, type RecordSourceProxy } from 'relay-runtime';
import { linkTo } from '../../shared/route';
import { Moment } from '../../shared/ui';
import type { Container_pallets$key } from './__generated__/Container_pallets.graphql';
import type { ContainerQuery } from './__generated__/ContainerQuery.graphql';
import type { ContainerSubscription } from './__generated__/ContainerSubscription.graphql';

/** A container, and how its pallets came into it: the fields of the edges. */
export function Container({ number, selected }: { number: string; selected?: string }) {
  const { container } = useLazyLoadQuery<ContainerQuery>(
    graphql`
      query ContainerQuery($number: ID!) {
        container(number: $number) {
          operator
          ...Container_pallets
        }
      }
    `,
    { number },
  );
  if (!container) return <p className="error">There is no container {number}.</p>;
  return (
    <>
      <h2>Container {number}</h2>
      <p className="about">{container.operator}</p>
      <Pallets container={container} number={number} selected={selected} />
    </>
  );
}

function Pallets(props: { container: Container_pallets$key; number: string; selected?: string }) {
  const { data, hasNext, isLoadingNext, loadNext } = usePaginationFragment<ContainerQuery, Container_pallets$key>(
    graphql`
      fragment Container_pallets on Container
      @refetchable(queryName: "ContainerPageQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 10 }, cursor: { type: "String" }) {
        id
        pallets(first: $count, after: $cursor) @connection(key: "Container_pallets") {
          edges {
            ...Container_loading @relay(mask: false)
          }
        }
      }
    `,
    props.container,
  );
  useFollowedPallets(data.id);
  return (
    <>
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
          {data.pallets.edges.map(
            ({ node, linkedBy, linkedAtLocation, linkedDatetime }) =>
              node && (
                <tr key={node.id} className={node.number === props.selected ? 'chosen' : undefined}>
                  <th scope="row">
                    <a href={linkTo(props.number, node.number)}>{node.number}</a>
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
      {hasNext && (
        <button className="more" onClick={() => loadNext(10)} disabled={isLoadingNext}>
          More
        </button>
      )}
    </>
  );
}

/** Keeps the list as it is on the server: pallets that anybody loads or unloads come and go. */
function useFollowedPallets(id: string) {
  useSubscription<ContainerSubscription>(
    useMemo(
      () => ({
        subscription: graphql`
          subscription ContainerSubscription($id: ID!) {
            containerPalletsChanged(id: $id) {
              kind
              nodeId
              edge {
                cursor
                ...Container_loading @relay(mask: false)
              }
            }
          }
        `,
        variables: { id },
        updater: (store) => {
          const change = store.getRootField('containerPalletsChanged');
          const connection = ConnectionHandler.getConnection(store.get(id)!, 'Container_pallets');
          if (connection) apply(store, connection, change);
        },
      }),
      [id],
    ),
  );
}

function apply(store: RecordSourceProxy, connection: RecordProxy, change: RecordProxy) {
  const number = (edge?: RecordProxy | null) => String(edge?.getLinkedRecord('node')?.getValue('number'));
  const told = change.getLinkedRecord('edge');
  const edges = connection.getLinkedRecords('edges') ?? [];
  const known = edges.find((edge) => edge?.getLinkedRecord('node')?.getDataID() === change.getValue('nodeId'));
  if (!told) {
    ConnectionHandler.deleteNode(connection, String(change.getValue('nodeId')));
  } else if (known) {
    known.copyFieldsFrom(told);
  } else {
    // The list is in the order of the pallets' numbers. What lies behind its last page comes with the next one.
    const edge = ConnectionHandler.buildConnectionEdge(store, connection, told)!;
    const next = edges.find((edge) => number(edge) > number(told));
    const isWhole = !connection.getLinkedRecord('pageInfo')?.getValue('hasNextPage');
    if (next) ConnectionHandler.insertEdgeBefore(connection, edge, String(next.getValue('cursor')));
    else if (isWhole) ConnectionHandler.insertEdgeAfter(connection, edge);
  }
}

graphql`
  fragment Container_loading on ContainerPalletsEdge {
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
`;
