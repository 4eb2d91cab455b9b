import { useSuspenseQuery } from '@apollo/client/react';
import { useTransition } from 'react';
import { linkTo } from '../../shared/route';
import { graphql } from './__generated__';

const CONTAINERS = graphql(`
  query Containers($first: Int!, $after: String) {
    containers(first: $first, after: $after) {
      edges {
        node {
          id
          number
          operator
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

/** All containers, page by page. */
export function Containers({ selected }: { selected?: string }) {
  const { data, fetchMore } = useSuspenseQuery(CONTAINERS, { variables: { first: 12 } });
  const [isLoading, startLoading] = useTransition();
  const { edges, pageInfo } = data.containers;
  return (
    <>
      <h2>Containers</h2>
      <ul className="list">
        {edges.map(
          ({ node }) =>
            node && (
              <li key={node.id}>
                <a href={linkTo(node.number)} aria-current={node.number === selected || undefined}>
                  <b>{node.number}</b> <span>{node.operator ?? '–'}</span>
                </a>
              </li>
            ),
        )}
      </ul>
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
