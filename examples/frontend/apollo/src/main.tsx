import { ApolloProvider } from '@apollo/client/react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../../shared/style.css';
import { useRoute } from '../../shared/route';
import { Panel } from '../../shared/ui';
import { client } from './client';
import { Container } from './Container';
import { Containers } from './Containers';
import { Pallet } from './Pallet';

function App() {
  const { container, pallet } = useRoute();
  return (
    <main>
      <Panel title="Containers">
        <Containers selected={container} />
      </Panel>
      {container && (
        <Panel title={`Container ${container}`} key={container}>
          <Container number={container} selected={pallet} />
        </Panel>
      )}
      {pallet && (
        <Panel title={`Pallet ${pallet}`} key={`${container}/${pallet}`}>
          <Pallet number={pallet} />
        </Panel>
      )}
    </main>
  );
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <ApolloProvider client={client}>
      <App />
    </ApolloProvider>
  </StrictMode>,
);
