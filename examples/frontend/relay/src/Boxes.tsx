import { useCallback } from 'react';
import { graphql, useFragment, useMutation, usePaginationFragment } from 'react-relay';
import { More } from '../../shared/ui';
import type { Boxes_box$key } from './__generated__/Boxes_box.graphql';
import type { Boxes_list$key } from './__generated__/Boxes_list.graphql';
import type { BoxesDangerMutation } from './__generated__/BoxesDangerMutation.graphql';
import type { BoxesPageQuery } from './__generated__/BoxesPageQuery.graphql';

/** The boxes of a pallet; more of them as one scrolls. */
export function Boxes({ pallet }: { pallet: Boxes_list$key }) {
  const { data, hasNext, isLoadingNext, loadNext } = usePaginationFragment<BoxesPageQuery, Boxes_list$key>(
    graphql`
      fragment Boxes_list on Pallet
      @refetchable(queryName: "BoxesPageQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 8 }, cursor: { type: "String" }) {
        boxes(first: $count, after: $cursor) @connection(key: "Boxes_boxes") {
          edges {
            linkedBy
            node {
              id
              ...Boxes_box
            }
          }
        }
      }
    `,
    pallet,
  );
  const more = useCallback(() => loadNext(8), [loadNext]);
  return (
    <div className="scroll">
      <ul className="list">
        {data.boxes.edges.map(
          ({ linkedBy, node }) => node && <Box key={node.id} box={node} packedBy={linkedBy ?? 'somebody'} />,
        )}
      </ul>
      {hasNext && <More onMore={more} isLoading={isLoadingNext} />}
    </div>
  );
}

function Box({ box, packedBy }: { box: Boxes_box$key; packedBy: string }) {
  const { id, number, weightInKg, isDangerous } = useFragment(
    graphql`
      fragment Boxes_box on Box {
        id
        number
        weightInKg
        isDangerous
      }
    `,
    box,
  );
  const [commit] = useMutation<BoxesDangerMutation>(graphql`
    mutation BoxesDangerMutation($id: ID!, $isDangerous: Boolean!) @raw_response_type {
      updateBox(key: { id: $id }, set: { isDangerous: $isDangerous }) {
        box {
          id
          isDangerous
        }
      }
    }
  `);
  const mark = (isDangerous: boolean) =>
    commit({
      variables: { id, isDangerous },
      optimisticResponse: { updateBox: { box: { id, isDangerous } } },
    });
  return (
    <li className={isDangerous ? 'box dangerous' : 'box'}>
      <b>{number}</b>
      <span title={`Packed by ${packedBy}`}>{weightInKg?.toFixed(1) ?? '?'} kg</span>
      <label>
        <input type="checkbox" checked={isDangerous ?? false} onChange={(event) => mark(event.target.checked)} />
        dangerous
      </label>
    </li>
  );
}
