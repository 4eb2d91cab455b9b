import { useMemo, useState } from 'react';
import { graphql, useFragment, useLazyLoadQuery, useMutation, useSubscription } from 'react-relay';
import { Editable } from '../../shared/ui';
import { Boxes } from './Boxes';
import type { Pallet_destination$key } from './__generated__/Pallet_destination.graphql';
import type { PalletDestinationMutation } from './__generated__/PalletDestinationMutation.graphql';
import type { PalletQuery } from './__generated__/PalletQuery.graphql';
import type { PalletSubscription } from './__generated__/PalletSubscription.graphql';

/** A pallet: where it goes, and its boxes. */
export function Pallet({ number }: { number: string }) {
  const { pallet } = useLazyLoadQuery<PalletQuery>(
    graphql`
      query PalletQuery($number: ID!) {
        pallet(number: $number) {
          id
          ...Pallet_destination
          ...Boxes_list
        }
      }
    `,
    { number },
  );
  if (!pallet) return <p className="error">There is no pallet {number}.</p>;
  return (
    <>
      <h2>Pallet {number}</h2>
      <Destination pallet={pallet} />
      <Boxes pallet={pallet} />
    </>
  );
}

/** Shows the new destination at once, and the old one again if somebody was faster. */
function Destination({ pallet }: { pallet: Pallet_destination$key }) {
  const { id, origin, destination } = useFragment(
    graphql`
      fragment Pallet_destination on Pallet {
        id
        origin
        destination
      }
    `,
    pallet,
  );
  const [commit] = useMutation<PalletDestinationMutation>(graphql`
    mutation PalletDestinationMutation($id: ID!, $was: String, $destination: String!) @raw_response_type {
      updatePallet(key: { id: $id }, set: { destination: $destination }, where: { destination: { eq: $was } }) {
        pallet {
          id
          destination
        }
      }
    }
  `);
  const [error, setError] = useState<string>();
  // Whoever changes it: what comes has the pallet's id, so the store needs to be told nothing else.
  useSubscription<PalletSubscription>(
    useMemo(
      () => ({
        subscription: graphql`
          subscription PalletSubscription($id: ID!) {
            palletChanged(id: $id) {
              node {
                ...Pallet_destination
              }
            }
          }
        `,
        variables: { id },
      }),
      [id],
    ),
  );
  const save = (next: string) =>
    commit({
      variables: { id, was: destination, destination: next },
      optimisticResponse: { updatePallet: { pallet: { id, destination: next } } },
      onCompleted: (_, errors) => setError(errors?.[0]?.message),
      onError: ({ message }) => setError(message),
    });
  return (
    <>
      <div className="about">
        From {origin ?? '?'} to <Editable label="Destination" value={destination ?? ''} onSave={save} />
      </div>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
    </>
  );
}
