/*
 * GraphiQL as a person meets it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, origin, picture, readConfig, visit as visitAny } from './browser.mjs';

test('the first example opens and runs', () =>
  visit('/graphql', async (page) => {
    const config = await readConfig(page);
    const [example] = config.tabs;
    assert.equal(await page.title(), `tablegraph · ${config.title}`);
    assert.equal(await page.getByRole('tab').count(), config.tabs.length);
    assert.equal(await page.getByRole('tab').first().getAttribute('aria-selected'), 'true');
    // Monaco renders only the lines in sight, and the page may have given the operation a name.
    const shown = fromFirstBrace(await page.locator('.graphiql-query-editor .view-lines').innerText());
    assert.ok(shown.length > 1 && fromFirstBrace(example.query).startsWith(shown), `The editor shows ${shown}`);

    await page.locator('.graphiql-query-editor .view-lines').click();
    const { body } = await answer(page, () => page.keyboard.press('ControlOrMeta+Enter'));

    assert.ok(body.data && !body.errors, JSON.stringify(body));
    await page.locator('.result-window').getByText('"data"').waitFor();
  }));

test('the docs list the Query type and the editor completes its fields', () =>
  visit('/graphql', async (page) => {
    const { endpoint } = await readConfig(page);
    const queryType = await readQueryType(new URL(endpoint, origin));

    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.locator('.graphiql-doc-explorer').getByText(queryType.name, { exact: true }).click();
    const [field] = queryType.fields;
    await page.locator('.graphiql-doc-explorer').getByText(field.name, { exact: true }).first().waitFor();

    await page.getByRole('button', { name: 'New tab' }).click();
    await page.locator('.graphiql-query-editor .view-lines').click();
    await page.keyboard.type(`{ ${field.name.slice(0, -1)}`);
    await page.locator('.suggest-widget.visible .monaco-list-row', { hasText: field.name }).first().waitFor();
    assert.ok(
      page.workers().some((worker) => worker.url().includes('graphql.worker')),
      'The GraphQL worker does not run',
    );
  }));

test('a link opens once, in a tab of its own, at its operation', () => {
  const link = new URLSearchParams({
    query: 'query First { first: __typename }\nquery Second($on: Boolean!) { second: __typename @include(if: $on) }',
    variables: '{"on": true}',
    operationName: 'Second',
  });
  return visit(`/graphql?${link}`, async (page) => {
    const { tabs } = await readConfig(page);
    const tab = page.getByRole('tab', { name: 'Second' });
    await tab.waitFor();
    assert.equal(await tab.getAttribute('aria-selected'), 'true');

    await page.locator('.graphiql-query-editor textarea').focus();
    const { body } = await answer(page, () => page.keyboard.press('ControlOrMeta+Enter'));
    assert.deepEqual(Object.keys(body.data ?? body), ['second']);

    await page.keyboard.press('ControlOrMeta+End');
    await page.keyboard.type(' # edited');
    await page.waitForFunction(() =>
      Object.entries(localStorage).some(([key, value]) => key.endsWith(':tabState') && value.includes('edited')),
    );
    await load(page, () => page.reload());
    await page.locator('.graphiql-query-editor').getByText('edited').waitFor();
    assert.equal(await page.getByRole('tab').count(), tabs.length + 1);
  });
});

test('the cost header goes with queries, is remembered, and never goes with the introspection', () =>
  visit('/graphql?query={__typename}', async (page) => {
    const header = (await readConfig(page)).costHeader.toLowerCase();
    const run = () => answer(page, () => page.getByRole('button', { name: /^Execute query/ }).click());
    const toggle = page.locator('.cost-toggle');

    assert.equal((await run()).request.headers()[header], 'requests');
    await toggle.click();
    assert.equal(await toggle.getAttribute('aria-pressed'), 'false');
    assert.equal((await run()).request.headers()[header], undefined);

    const introspection = await load(page, () => page.reload());
    assert.equal(introspection.headers()[header], undefined);
    assert.equal(await toggle.getAttribute('aria-pressed'), 'false');
    await toggle.click();
    assert.equal((await run()).request.headers()[header], 'requests');
    const again = page.waitForRequest(isIntrospection);
    await page.getByRole('button', { name: /^Re-fetch GraphQL schema/ }).click();
    assert.equal((await again).headers()[header], undefined);
  }));

for (const colorScheme of ['light', 'dark']) {
  test(`the requests of a run are drawn, with what they cost: ${colorScheme}`, () =>
    visit(
      '/graphql',
      async (page) => {
        await page.getByRole('button', { name: 'Show DynamoDB Requests' }).click();
        const panel = page.getByRole('region', { name: 'DynamoDB requests' });
        await panel.getByText('Run a query').waitFor();
        const { body } = await answer(page, () => page.getByRole('button', { name: /^Execute query/ }).click());

        const { trace, ...sums } = body.extensions.cost;
        await panel.getByText(`${sums.requests.total} requests in`).waitFor();
        assert.equal(trace.length, sums.requests.total);
        assert.equal(await panel.getByRole('listitem').count(), trace.length);
        assert.equal(
          sums.capacityUnits,
          trace.reduce((total, { units }) => total + units, 0),
        );
        await panel.getByRole('row', { name: `Read units ${sums.capacityUnits} at $0.125 a million` }).waitFor();
        await panel.getByText('on demand, at list price: us-east-1').waitFor();
        // The result shows the sums alone: the panel has the rest.
        await page.locator('.result-window').getByText('"data"').waitFor();
        assert.ok(!(await page.locator('.result-window').innerText()).includes('"trace"'));
        await picture(page, `graphiql-requests-${colorScheme}`);
      },
      { colorScheme },
    ));
}

test('the access patterns are a table', () =>
  visit('/graphql', async (page) => {
    await page.getByRole('button', { name: 'Show Access Patterns' }).click();
    const panel = page.getByRole('region', { name: 'Access patterns' });
    await panel.getByRole('row', { name: 'Box.pallet 1 Query reverse-lookup-index' }).waitFor();
    await panel.getByLabel('Filter the access patterns').fill('scan');
    await panel.getByText('none: filtered by the shape of the key').waitFor();
    assert.equal(await panel.getByRole('row').count(), 3);
    await picture(page, 'graphiql-patterns-light');
  }));

test('the explorer builds a query by the keyboard alone, and leaves all else as it is', () =>
  visit(`/graphql?${new URLSearchParams({ query: '# Mine.\n{ box(number: "A03828") { number } }' })}`, async (page) => {
    await page.getByRole('button', { name: 'Show Explorer' }).focus();
    await page.keyboard.press('Enter');
    const panel = page.getByRole('region', { name: 'Explorer' });
    await panel.getByRole('checkbox', { name: 'weightInKg Float' }).focus();
    await page.keyboard.press('Space');
    await panel.getByRole('checkbox', { name: 'pallet Pallet', exact: true }).last().focus();
    await page.keyboard.press('Space');
    const { request, body } = await answer(page, () => run(page));

    assert.deepEqual(Object.keys(body.data.box), ['number', 'weightInKg', 'pallet']);
    assert.ok(body.data.box.pallet.id);
    assert.ok(request.postDataJSON().query.startsWith('# Mine.'));
    await panel.getByRole('checkbox', { name: 'container Container', exact: true }).last().click();
    await page.locator('.graphiql-query-editor').getByText('container').waitFor();
    await picture(page, 'graphiql-explorer-light');
  }));

test('the pages lead to each other', () =>
  visit('/graphql', async (page) => {
    const links = page.getByRole('navigation', { name: 'Pages' });
    assert.deepEqual(await links.getByRole('link').allInnerTexts(), ['GraphiQL', 'Graph', 'Schema']);
    await links.getByRole('link', { name: 'Graph', exact: true }).click();
    await page.getByRole('application').waitFor();
    await links.getByRole('link', { name: 'Schema' }).click();
    await page.getByRole('button', { name: 'Container', exact: true }).first().waitFor();
  }));

const FOLLOWED = 'subscription { containerChanged { node { number operator } } }';

test('a subscription shows what is written meanwhile, until it is stopped', (t) =>
  visit(`/graphql?${new URLSearchParams({ query: FOLLOWED })}`, async (page) => {
    if (!(await hasSubscriptions())) return t.skip('The API has no subscriptions');
    const opened = page.waitForResponse((response) => isQuery(response.request()));
    await page.getByRole('button', { name: /^Execute query/ }).click();
    assert.match((await opened).headers()['content-type'], /^text\/event-stream/);
    for (const operator of ['Maersk', 'Evergreen']) {
      await writeContainer(operator);
      await page.locator('.result-window').getByText(`"${operator}"`).waitFor();
    }

    await page.getByRole('button', { name: /^Stop query/ }).click();
    await page.getByRole('button', { name: /^Execute query/ }).waitFor();
  }));

test('the EventSource that browsers have follows a subscription', (t) =>
  visit('/graphql', async (page) => {
    if (!(await hasSubscriptions())) return t.skip('The API has no subscriptions');
    await page.evaluate((query) => {
      globalThis.events = new EventSource(`/graphql?${new URLSearchParams({ query })}`);
      globalThis.next = new Promise((resolve) => events.addEventListener('next', resolve));
      return new Promise((resolve) => events.addEventListener('open', resolve));
    }, FOLLOWED);
    await writeContainer('Hapag');

    const { data } = JSON.parse(await page.evaluate(async () => (await next).data));
    assert.equal(data.containerChanged.node.operator, 'Hapag');
    await page.evaluate(() => events.close());
  }));

test('the colours follow the system', () =>
  visit('/graphql', async (page) => {
    for (const [colorScheme, theme] of [
      ['dark', 'vs-dark'],
      ['light', 'vs'],
      ['dark', 'vs-dark'],
    ]) {
      await page.emulateMedia({ colorScheme });

      await page.locator(`.graphiql-query-editor .monaco-editor.${theme}`).waitFor();
      const [red] = await page
        .locator('.graphiql-container')
        .evaluate((element) => getComputedStyle(element).backgroundColor.match(/\d+/g).map(Number));
      assert.equal(red < 128, colorScheme === 'dark', `The page is not ${colorScheme}`);
    }
  }));

const visit = (path, check, options) => visitAny(path, check, { go: load, ...options });

/** Go somewhere and wait until the page can be used; return the request that asked for the schema. */
async function load(page, go) {
  const introspected = page.waitForResponse((response) => isIntrospection(response.request()));
  await go();
  const response = await introspected;
  await page.locator('.graphiql-query-editor .view-line').first().waitFor();
  return response.request();
}

function run(page) {
  return page.getByRole('button', { name: /^Execute query/ }).click();
}

/** Do something that sends a query; return the request and the body of its answer. */
async function answer(page, act) {
  const answered = page.waitForResponse((response) => isQuery(response.request()));
  await act();
  const response = await answered;
  return { request: response.request(), body: await response.json() };
}

function isQuery(request) {
  return request.method() === 'POST' && !isIntrospection(request);
}

function isIntrospection(request) {
  return request.method() === 'POST' && request.postDataJSON().operationName === 'IntrospectionQuery';
}

async function readQueryType(endpoint) {
  return (await ask('{ __schema { queryType { name fields { name } } } }', endpoint)).__schema.queryType;
}

async function hasSubscriptions() {
  return Boolean((await ask('{ __schema { subscriptionType { name } } }')).__schema.subscriptionType);
}

function writeContainer(operator) {
  const input = `{ number: "UI1", operator: "${operator}" }`;
  return ask(`mutation { upsertContainer(input: ${input}) { container { number } } }`);
}

function fromFirstBrace(query) {
  return query.slice(query.indexOf('{')).replace(/\s/g, '');
}
