/*
 * /graphql: GraphiQL, and beside it an explorer, the requests of the last run, and the model's access patterns.
 *
 * /graphql?query=…&variables=…&operationName=… opens that query in a tab of its own.
 */
import './workers';
import 'graphiql/style.css';
import './page.css';

import { createGraphiQLFetcher, createLocalStorage } from '@graphiql/toolkit';
import { pick, ToolbarButton, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { GraphiQL, HISTORY_PLUGIN } from 'graphiql';
import { getOperationAST } from 'graphql';
import { createClient as createEventsClient } from 'graphql-sse';
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { config } from './config';
import { Links } from './links';
import { explorerPlugin } from './plugins/explorer';
import { patternsPlugin } from './plugins/patterns';
import { noteCost, requestsPlugin } from './plugins/requests';

const link = readLink();
const storage = createLocalStorage({ namespace: `tablegraph:${config.title}` });
const examples = config.tabs.map(nameOperation);

// A link counts when it is followed, not when its page is reloaded: by then its query is a tab, perhaps an edited one.
function readLink() {
  const parameters = Object.fromEntries(new URLSearchParams(location.search));
  const followed = performance.getEntriesByType('navigation')[0]?.type === 'navigate';
  return parameters.query && followed ? parameters : null;
}

// GraphiQL names a tab after its operation, so an anonymous example is given its title as name.
function nameOperation({ title = 'Example', query, variables }) {
  const name = title.replace(/\W+(\w?)/g, (_, letter) => letter.toUpperCase()).replace(/^(?=\d)/, '_');
  return { query: query.replace(/^((?:\s|#.*\n)*)\{/, `$1query ${name} {`), variables };
}

/*
 * GraphiQL starts with the query and variables that it stored last, in the tab that has them or in a new one. Its
 * `initialQuery` and `defaultTabs` alone are not enough: they show the first tab without its variables, and give a
 * query without variables those of the visit before. So what should open is stored before it starts.
 */
function chooseFirstTab() {
  const firstVisit = !storage.getItem('graphiql:tabState');
  const tabs = firstVisit && link ? [link, ...examples] : examples;
  const open = link ?? (firstVisit ? tabs[0] : null);
  if (open) {
    storage.setItem('graphiql:query', open.query);
    storage.setItem('graphiql:variables', open.variables ?? '');
  }
  return tabs.length ? tabs : undefined;
}

const plugins = [HISTORY_PLUGIN, explorerPlugin, requestsPlugin, ...(config.outline ? [patternsPlugin] : [])];

let askForCost = storage.getItem('cost') !== 'off';

const post = createGraphiQLFetcher({ url: config.endpoint, enableIncrementalDelivery: false });

// Changing `fetcher` makes GraphiQL read the schema again, hence one function for both positions of the toggle.
function fetcher(params, options) {
  const asksForCost = askForCost && params.operationName !== 'IntrospectionQuery';
  const headers = { ...(asksForCost && { [config.costHeader]: 'requests' }), ...options?.headers };
  if (goesOn(params, options)) return createEventsClient({ url: config.endpoint, headers }).iterate(params);
  const answer = post(params, { ...options, headers });
  return params.operationName === 'IntrospectionQuery' ? answer : answer.then(noteCost);
}

/** Tell whether more than one answer will come. By events, for they pass wherever queries do, WebSockets often not. */
function goesOn({ operationName }, options) {
  const operation = options?.documentAST && getOperationAST(options.documentAST, operationName);
  return operation?.operation === 'subscription' || operation?.directives.some(({ name }) => name.value === 'live');
}

function CostToggle() {
  const [pressed, setPressed] = useState(askForCost);
  const toggle = () => {
    askForCost = !pressed;
    storage.setItem('cost', askForCost ? 'on' : 'off');
    setPressed(askForCost);
  };
  return (
    <ToolbarButton className="cost-toggle" aria-pressed={pressed} label="Show the cost of each query" onClick={toggle}>
      cost
    </ToolbarButton>
  );
}

/** Put the cursor on the link's operation: GraphiQL runs the operation that the cursor is in. */
function LinkedOperation() {
  const { queryEditor, operations } = useGraphiQL(pick('queryEditor', 'operations'));
  const { setOperationName } = useGraphiQLActions();
  useEffect(() => {
    const operation = operations?.find(({ name }) => name?.value === link.operationName);
    if (!queryEditor || !operation) return;
    const position = queryEditor.getModel().getPositionAt(operation.loc.start);
    queryEditor.setPosition(position);
    queryEditor.revealPositionNearTop(position);
    setOperationName(link.operationName);
  }, [queryEditor]);
}

/** GraphiQL's colours follow the system at once, its editors only when the theme is set again. */
function SystemTheme() {
  const theme = useGraphiQL((state) => state.theme);
  const { setTheme } = useGraphiQLActions();
  useEffect(() => {
    if (theme) return;
    const system = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setTheme(null);
    system.addEventListener('change', follow);
    return () => system.removeEventListener('change', follow);
  }, [theme]);
}

document.title = ['tablegraph', config.title].filter(Boolean).join(' · ');

createRoot(document.getElementById('graphiql')).render(
  <GraphiQL
    fetcher={fetcher}
    storage={storage}
    plugins={plugins}
    defaultTabs={chooseFirstTab()}
    defaultEditorToolsVisibility={examples.some(({ variables }) => variables) || undefined}
    inputValueDeprecation
    schemaDescription
  >
    <GraphiQL.Logo>
      <Links />
    </GraphiQL.Logo>
    <GraphiQL.Toolbar>
      {({ prettify, merge, copy }) => (
        <>
          {prettify}
          {merge}
          {copy}
          <CostToggle />
        </>
      )}
    </GraphiQL.Toolbar>
    <SystemTheme />
    {link?.operationName && <LinkedOperation />}
  </GraphiQL>,
);
