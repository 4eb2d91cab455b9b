/* The DynamoDB requests of the last run, as a waterfall, with what they consumed and what that costs. */
import { useSyncExternalStore } from 'react';
import { config } from '../config';

const WRITES = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem', 'TransactWriteItems'];
const MILLION = 1_000_000;

let lastCost = null;
const listeners = new Set();

/** Keep what an answer says of its cost for the panel; the result shows the sums alone. */
export function noteCost(answer) {
  const cost = answer?.extensions?.cost;
  lastCost = cost ?? null;
  for (const listener of listeners) listener();
  if (!cost?.trace) return answer;
  const { trace, ...sums } = cost;
  return { ...answer, extensions: { ...answer.extensions, cost: sums } };
}

function useLastCost() {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => lastCost,
  );
}

function Requests() {
  const cost = useLastCost();
  return (
    <section className="beside-graphiql" aria-label="DynamoDB requests">
      <h2>Requests</h2>
      {cost?.trace ? (
        <Waterfall cost={cost} />
      ) : (
        <p>Run a query with “cost” switched on: its requests are shown here. A subscription shows none.</p>
      )}
    </section>
  );
}

function Waterfall({ cost: { trace, retries } }) {
  const end = Math.max(0.01, ...trace.map(({ start, ms }) => start + ms));
  const [reads, writes] = [false, true].map((isWrite) =>
    sum(trace.filter((each) => WRITES.includes(each.operation) === isWrite)),
  );
  return (
    <>
      <p>
        {trace.length} {trace.length === 1 ? 'request' : 'requests'} in {end.toFixed(1)} ms
        {retries ? `, ${retries} tried again` : ''}
      </p>
      <ol className="waterfall">
        {trace.map(({ operation, table, index, start, ms, units, items, error }, number) => (
          <li key={number}>
            <div className="what">
              <span>
                <strong>{operation}</strong> {index ?? table ?? ''}
              </span>
              <span className={error ? 'failed' : ''}>
                {error ?? `${ms.toFixed(1)} ms · ${counted(units, 'unit')} · ${counted(items, 'item')}`}
              </span>
            </div>
            <svg width="100%" height="8" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 100 8">
              <rect className="track" width="100" height="8" />
              <rect
                className={WRITES.includes(operation) ? 'write' : 'read'}
                x={(100 * start) / end}
                width={Math.max(0.6, (100 * ms) / end)}
                height="8"
              />
            </svg>
          </li>
        ))}
      </ol>
      <table>
        <tbody>
          <Price name="Read units" units={reads} price={config.prices?.read} />
          <Price name="Write units" units={writes} price={config.prices?.write} />
        </tbody>
      </table>
      {config.prices && (
        <p className="note">
          A million such runs: <strong>{dollars(MILLION * priceOf(reads, writes))}</strong>, on demand,{' '}
          {config.prices.source}, {config.prices.asOf}.
        </p>
      )}
    </>
  );
}

function Price({ name, units, price }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{units}</td>
      <td>{price !== undefined && `at ${dollars(price * MILLION)} a million`}</td>
    </tr>
  );
}

function counted(many, name) {
  return `${many} ${name}${many === 1 ? '' : 's'}`;
}

function sum(calls) {
  return Math.round(1000 * calls.reduce((total, { units = 0 }) => total + units, 0)) / 1000;
}

function priceOf(reads, writes) {
  return reads * config.prices.read + writes * config.prices.write;
}

function dollars(amount) {
  const digits = amount === 0 || amount >= 1 ? 2 : 3;
  return `$${amount.toFixed(digits)}`;
}

function Icon(props) {
  return (
    <svg
      height="1em"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      {...props}
    >
      <path d="M3 5h8M7 12h9M13 19h8" />
    </svg>
  );
}

export const requestsPlugin = { title: 'DynamoDB Requests', icon: Icon, content: Requests };
