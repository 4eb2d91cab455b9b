/*
 * The page as a person meets it: Debian's Chromium against a running server.
 *
 *   TABLEGRAPH_URL   where the server is, e.g. http://127.0.0.1:8000
 *   CHROMIUM         another browser than /usr/bin/chromium
 *   SCREENSHOT       where to write a picture of the page after the first query
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const { TABLEGRAPH_URL, CHROMIUM = '/usr/bin/chromium', SCREENSHOT } = process.env;

if (!TABLEGRAPH_URL) stop('Set TABLEGRAPH_URL to the address of a running tablegraph, e.g. http://127.0.0.1:8000');
if (!existsSync(CHROMIUM)) stop(`No browser at ${CHROMIUM}: apt-get install chromium, or set CHROMIUM to another one`);

const origin = new URL(TABLEGRAPH_URL).origin;
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  });
});

after(() => browser?.close());

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
    if (SCREENSHOT) await page.screenshot({ path: SCREENSHOT });
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

    assert.equal((await run()).request.headers()[header], '1');
    await toggle.click();
    assert.equal(await toggle.getAttribute('aria-pressed'), 'false');
    assert.equal((await run()).request.headers()[header], undefined);

    const introspection = await load(page, () => page.reload());
    assert.equal(introspection.headers()[header], undefined);
    assert.equal(await toggle.getAttribute('aria-pressed'), 'false');
    await toggle.click();
    assert.equal((await run()).request.headers()[header], '1');
    const again = page.waitForRequest(isIntrospection);
    await page.getByRole('button', { name: /^Re-fetch GraphQL schema/ }).click();
    assert.equal((await again).headers()[header], undefined);
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
    for (const [colorScheme, theme] of [['dark', 'vs-dark'], ['light', 'vs'], ['dark', 'vs-dark']]) {
      await page.emulateMedia({ colorScheme });

      await page.locator(`.graphiql-query-editor .monaco-editor.${theme}`).waitFor();
      const [red] = await page
        .locator('.graphiql-container')
        .evaluate((element) => getComputedStyle(element).backgroundColor.match(/\d+/g).map(Number));
      assert.equal(red < 128, colorScheme === 'dark', `The page is not ${colorScheme}`);
    }
  }));

/** Open a page in a fresh profile, check it, and hold it to the rules that every page keeps. */
async function visit(path, check) {
  const context = await browser.newContext();
  const errors = [];
  const strangers = [];
  context.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  context.on('weberror', (webError) => errors.push(String(webError.error())));
  context.on('request', (request) => {
    const { protocol, origin: host } = new URL(request.url());
    if (!['data:', 'blob:'].includes(protocol) && host !== origin) strangers.push(request.url());
  });
  try {
    const page = await context.newPage();
    await load(page, () => page.goto(origin + path));
    await check(page);
    assert.deepEqual(errors, [], 'The console shows errors');
    assert.deepEqual(strangers, [], 'The page asks other hosts');
  } finally {
    await context.close();
  }
}

/** Go somewhere and wait until the page can be used; return the request that asked for the schema. */
async function load(page, go) {
  const introspected = page.waitForResponse((response) => isIntrospection(response.request()));
  await go();
  const response = await introspected;
  await page.locator('.graphiql-query-editor .view-line').first().waitFor();
  return response.request();
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

async function readConfig(page) {
  return JSON.parse(await page.locator('#tablegraph-config').textContent());
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

/** Run an operation past the page; give its data. */
async function ask(query, endpoint = new URL('/graphql', origin)) {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/graphql-response+json' },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  assert.ok(data && !errors, JSON.stringify(errors));
  return data;
}

function fromFirstBrace(query) {
  return query.slice(query.indexOf('{')).replace(/\s/g, '');
}

function stop(reason) {
  console.error(reason);
  process.exit(1);
}
