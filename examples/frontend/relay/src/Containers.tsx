import { graphql, useFragment, useLazyLoadQuery, usePaginationFragment } from 'react-relay';
import { linkTo } from '../../shared/route';
import type { Containers_list$key } from './__generated__/Containers_list.graphql';
import type { Containers_row$key } from './__generated__/Containers_row.graphql';
import type { ContainersQuery } from './__generated__/ContainersQuery.graphql';

/** All containers, page by page. */
export function Containers({ selected }: { selected?: string }) {
  const query = useLazyLoadQuery<ContainersQuery>(
    graphql`
      query ContainersQuery {
        ...Containers_list
      }
    `,
    {},
  );
  const { data, hasNext, isLoadingNext, loadNext } = usePaginationFragment<ContainersQuery, Containers_list$key>(
    graphql`
      fragment Containers_list on Query
      @refetchable(queryName: "ContainersPageQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 12 }, cursor: { type: "String" }) {
        containers(first: $count, after: $cursor) @connection(key: "Containers_containers") {
          edges {
            node {
              id
              number
              ...Containers_row
            }
          }
        }
      }
    `,
    query,
  );
  return (
    <>
      <h2>Containers</h2>
      <ul className="list">
        {data.containers.edges.map(
          ({ node }) => node && <Row key={node.id} container={node} isSelected={node.number === selected} />,
        )}
      </ul>
      {hasNext && (
        <button className="more" onClick={() => loadNext(12)} disabled={isLoadingNext}>
          More
        </button>
      )}
    </>
  );
}

function Row({ container, isSelected }: { container: Containers_row$key; isSelected: boolean }) {
  const { number, operator } = useFragment(
    graphql`
      fragment Containers_row on Container {
        number
        operator
      }
    `,
    container,
  );
  return (
    <li>
      <a href={linkTo(number)} aria-current={isSelected || undefined}>
        <b>{number}</b> <span>{operator ?? '–'}</span>
      </a>
    </li>
  );
}
