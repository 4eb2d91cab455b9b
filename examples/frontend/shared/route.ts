import { useSyncExternalStore } from 'react';

const subscribe = (changed: () => void) => {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
};

/** What the address shows: #/009998 a container, #/009998/B021002 a pallet in it. */
export function useRoute(): { container?: string; pallet?: string } {
  const [, container, pallet] = useSyncExternalStore(subscribe, () => location.hash).split('/').map(decodeURIComponent);
  return { container, pallet };
}

export const linkTo = (...numbers: string[]) => ['#', ...numbers.map(encodeURIComponent)].join('/');
