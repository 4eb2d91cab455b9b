import { useMutation, useSubscription, useSuspenseQuery } from '@apollo/client/react';
import { useCallback, useTransition } from 'react';
import { Editable, More } from '../../shared/ui';
import { graphql } from './__generated__';
import type { BoxFragment, PalletQuery } from './__generated__/graphql';

const PALLET = graphql(`
  query Pallet($number: ID!, $first: Int!, $after: String) {
    pallet(number: $number) {
      id
      origin
      destination
      boxes(first: $first, after: $after) {
        edges {
          linkedBy
          node {
            ...Box
          }
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }

  fragment Box on Box {
    id
    number
    weightInKg
    isDangerous
  }
`);

/** A pallet: where it goes, and its boxes; more of them as one scrolls. */
export function Pallet({ number }: { number: string }) {
  const { data, fetchMore } = useSuspenseQuery(PALLET, { variables: { number, first: 8 } });
  const [isLoading, startLoading] = useTransition();
  const after = data.pallet?.boxes.pageInfo.endCursor;
  const more = useCallback(
    () => startLoading(async () => void (await fetchMore({ variables: { after } }))),
    [after, fetchMore],
  );
  if (!data.pallet) return <p className="error">There is no pallet {number}.</p>;
  const { edges, pageInfo } = data.pallet.boxes;
  return (
    <>
      <h2>Pallet {number}</h2>
      <Destination pallet={data.pallet} />
      <div className="scroll">
        <ul className="list">
          {edges.map(({ linkedBy, node }) => node && <Box key={node.id} box={node} packedBy={linkedBy ?? 'somebody'} />)}
        </ul>
        {pageInfo.hasNextPage && <More onMore={more} isLoading={isLoading} />}
      </div>
    </>
  );
}

const SET_DESTINATION = graphql(`
  mutation SetDestination($id: ID!, $was: String, $destination: String!) {
    updatePallet(key: { id: $id }, set: { destination: $destination }, where: { destination: { eq: $was } }) {
      pallet {
        id
        destination
      }
    }
  }
`);

const PALLET_CHANGED = graphql(`
  subscription PalletChanged($id: ID!) {
    palletChanged(id: $id) {
      node {
        id
        origin
        destination
      }
    }
  }
`);

/** Shows the new destination at once, and the old one again if somebody was faster. */
function Destination({ pallet: { id, origin, destination } }: { pallet: NonNullable<PalletQuery['pallet']> }) {
  // Whoever changes it: what comes has the pallet's id, so the cache needs to be told nothing else.
  useSubscription(PALLET_CHANGED, { variables: { id } });
  const [set, { error }] = useMutation(SET_DESTINATION);
  const save = (next: string) =>
    void set({
      variables: { id, was: destination, destination: next },
      optimisticResponse: {
        updatePallet: {
          __typename: 'PalletPayload',
          pallet: { __typename: 'Pallet', id, destination: next },
        },
      },
    }).catch(() => 'is shown as `error`');
  return (
    <>
      <div className="about">
        From {origin ?? '?'} to <Editable label="Destination" value={destination ?? ''} onSave={save} />
      </div>
      {error && (
        <p className="error" role="alert">
          {error.message}
        </p>
      )}
    </>
  );
}

const MARK = graphql(`
  mutation Mark($id: ID!, $isDangerous: Boolean!) {
    updateBox(key: { id: $id }, set: { isDangerous: $isDangerous }) {
      box {
        id
        isDangerous
      }
    }
  }
`);

function Box({ box: { id, number, weightInKg, isDangerous }, packedBy }: { box: BoxFragment; packedBy: string }) {
  const [mark] = useMutation(MARK);
  return (
    <li className={isDangerous ? 'box dangerous' : 'box'}>
      <b>{number}</b>
      <span title={`Packed by ${packedBy}`}>{weightInKg?.toFixed(1) ?? '?'} kg</span>
      <label>
        <input
          type="checkbox"
          checked={isDangerous ?? false}
          onChange={({ target: { checked } }) =>
            void mark({
              variables: { id, isDangerous: checked },
              optimisticResponse: {
                updateBox: { __typename: 'BoxPayload', box: { __typename: 'Box', id, isDangerous: checked } },
              },
            })
          }
        />
        dangerous
      </label>
    </li>
  );
}
