/*
 * A browser for the tests: Debian's Chromium against a running server.
 *
 *   TABLEGRAPH_URL         where the server is, e.g. http://127.0.0.1:8000
 *   TABLEGRAPH_LARGE_URL   one with a large model, which answers only to the API key in TABLEGRAPH_KEY
 *   CHROMIUM               another browser than /usr/bin/chromium
 *   SCREENSHOTS            a folder: the pictures for README are written there
 */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';
import { isThere, launch, place } from '../../../tests/chromium.mjs';

const {
  TABLEGRAPH_URL,
  TABLEGRAPH_LARGE_URL,
  TABLEGRAPH_KEY,
  SCREENSHOTS,
} = process.env;

if (!TABLEGRAPH_URL) stop('Set TABLEGRAPH_URL to the address of a running tablegraph, e.g. http://127.0.0.1:8000');
if (!isThere) stop(`No browser at ${place}: apt-get install chromium, or set CHROMIUM to another one`);

export const origin = new URL(TABLEGRAPH_URL).origin;
export const large = TABLEGRAPH_LARGE_URL && new URL(TABLEGRAPH_LARGE_URL).origin;
export const authorization = { Authorization: `Bearer ${TABLEGRAPH_KEY}` };
let browser;

before(async () => {
  browser = await launch(chromium);
});

after(() => browser?.close());

/** Open a page in a fresh profile, check it, and hold it to the rules that every page keeps. */
export async function visit(path, check, { at = origin, go = open, allowed = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 700 }, ...options });
  context.setDefaultTimeout(15_000);
  const errors = [];
  const strangers = [];
  const note = (text) => allowed.some((pattern) => pattern.test(text)) || errors.push(text);
  context.on('console', (message) => message.type() === 'error' && note(message.text()));
  context.on('weberror', (webError) => note(String(webError.error())));
  context.on('request', (request) => {
    const { protocol, origin: host } = new URL(request.url());
    if (!['data:', 'blob:'].includes(protocol) && host !== at) strangers.push(request.url());
  });
  try {
    const page = await context.newPage();
    await go(page, () => page.goto(at + path));
    await check(page);
    assert.deepEqual(errors, [], 'The console shows errors');
    assert.deepEqual(strangers, [], 'The page asks other hosts');
  } finally {
    await context.close();
  }
}

async function open(_, go) {
  await go();
}

/** Write a picture for README, if it is to be written. */
export async function picture(page, name) {
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${name}.png` });
}

export async function readConfig(page) {
  return JSON.parse(await page.locator('#tablegraph-config').textContent());
}

/** Run an operation past the page; give its data. */
export async function ask(query, endpoint = new URL('/graphql', origin)) {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/graphql-response+json' },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  assert.ok(data && !errors, JSON.stringify(errors));
  return data;
}

function stop(reason) {
  console.error(reason);
  process.exit(1);
}
