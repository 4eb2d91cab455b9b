/*
 * Pages of other sites, in a browser: what it sends for them unasked, and what it lets them read.
 *
 *   TABLEGRAPH_URL      where the server is
 *   TABLEGRAPH_FRIEND   the origin of a site that it has in --cors-origins; this file serves it
 *   CHROMIUM            another browser than /usr/bin/chromium
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const { TABLEGRAPH_URL, TABLEGRAPH_FRIEND, CHROMIUM = '/usr/bin/chromium' } = process.env;
const endpoint = new URL('/graphql', TABLEGRAPH_URL).href;
const query = encodeURIComponent('{ __typename }');
let browser;
let sites;

before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  sites = await Promise.all([serve(Number(new URL(TABLEGRAPH_FRIEND).port)), serve(0)]);
});

after(async () => {
  await browser?.close();
  sites?.forEach((site) => site.close());
});

for (const [kind, number, expected] of [
  ['friend', 0, { asked: 'Query', read: 'Query', image: 403, socket: 'open' }],
  ['stranger', 1, { asked: 'TypeError', read: 'TypeError', image: 403, socket: 'error' }],
]) {
  test(`a page of a ${kind} gets no further than it may`, async () => {
    const context = await browser.newContext();
    try {
      const page = await context.newPage();
      await page.goto(`http://localhost:${sites[number].address().port}/`);
      const image = statusOf(await context.newCDPSession(page), 'image=1');
      const found = await page.evaluate(act, { endpoint, query });
      assert.deepEqual({ ...found, image: await image }, expected);
    } finally {
      await context.close();
    }
  });
}

/** The status of an answer, also of one that the browser keeps from the page. */
async function statusOf(devtools, part) {
  let asked;
  const status = new Promise((resolve) => {
    devtools.on('Network.requestWillBeSent', ({ request, requestId }) => {
      if (request.url.includes(part)) asked = requestId;
    });
    devtools.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) => {
      if (requestId === asked) resolve(statusCode);
    });
  });
  await devtools.send('Network.enable');
  return status;
}

/** In the page: ask by POST and by GET, embed a query as an image, and open a socket. */
async function act({ endpoint, query }) {
  const typename = async (request) => {
    try {
      return (await (await request).json()).data.__typename;
    } catch (error) {
      return error.name;
    }
  };
  globalThis.image = new Image();
  image.src = `${endpoint}?query=${query}&image=1`;
  const json = { 'Content-Type': 'application/json', 'Tablegraph-Cost': '1' };
  return {
    asked: await typename(fetch(endpoint, { method: 'POST', headers: json, body: '{"query":"{ __typename }"}' })),
    read: await typename(fetch(`${endpoint}?query=${query}`)),
    socket: await new Promise((resolve) => {
      const socket = new WebSocket(endpoint.replace('http', 'ws'), 'graphql-transport-ws');
      socket.onopen = socket.onerror = (event) => resolve(event.type);
    }),
  };
}

function serve(port) {
  return new Promise((resolve) => {
    const site = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<!doctype html>'));
    site.listen(port, () => resolve(site));
  });
}
