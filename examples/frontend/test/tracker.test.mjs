/*
 * Both trackers as a person meets them: Debian's Chromium, Vite's pages, and a running tablegraph with the demo's fleet.
 *
 *   TABLEGRAPH_URL   where the server is, e.g. http://127.0.0.1:8000
 *   TRUSTING_URL     one that takes only the documents that `npm run build:persisted` wrote
 *   CHROMIUM         another browser than /usr/bin/chromium
 *   SCREENSHOTS      set: write the pictures of the READMEs anew
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';
import { createServer, preview } from 'vite';
import { launch } from '../../../tests/chromium.mjs';

const { TABLEGRAPH_URL, TRUSTING_URL, SCREENSHOTS } = process.env;
const ROOT = join(import.meta.dirname, '..');
const PICTURE = { width: 1440, height: 590 };
let browser;

before(async () => {
  browser = await launch(chromium);
});

after(() => browser?.close());

// Each has a container of its own to change; one README shows the light, the other the dark.
for (const [app, number, picture] of [['relay', '000029', 'light'], ['apollo', '000013', 'dark']]) {
  const pallet = `C${number.slice(3)}001`;

  describe(app, () => {
    let site;

    before(async () => {
      // React and Relay complain on the console only while one develops.
      site = await createServer({ root: join(ROOT, app), server: { port: 0, host: '127.0.0.1' }, logLevel: 'warn' });
      await site.listen();
    });

    after(() => site.close());

    const visit = (path, check, options) => visitSite(site.resolvedUrls.local[0], path, check, options);

    test('pages on through containers, pallets and boxes', () =>
      visit('', async (page) => {
        const containers = page.getByRole('region', { name: 'Containers' });
        await count(containers.getByRole('link'), 12);
        await containers.getByRole('button', { name: 'More' }).click();
        await count(containers.getByRole('link'), 24);

        await containers.getByRole('link').first().press('Enter');
        const pallets = page.getByRole('region', { name: /^Container / });
        await count(pallets.getByRole('link'), 10);
        await pallets.getByRole('button', { name: 'More' }).click();
        await count(pallets.getByRole('link'), 20);
        assert.match(await pallets.getByRole('row').nth(1).innerText(), /→.*Docks.*2022/s);

        await pallets.getByRole('link').first().click();
        const boxes = page.getByRole('region', { name: /^Pallet / }).getByRole('listitem');
        await count(boxes, 8);
        await page.locator('.scroll').evaluate((list) => list.scrollTo(0, list.scrollHeight));
        await count(boxes, 15);
      }));

    test('a change shows before it is confirmed, and stays', () =>
      visit(`#/${number}/${pallet}`, async (page) => {
        const held = await hold(page, /Destination/);
        await page.getByLabel('Destination').fill('FR');
        await page.keyboard.press('Enter');

        await row(page, pallet).getByText('→ FR').waitFor();
        assert.notEqual((await ask(`{ pallet(number: "${pallet}") { destination } }`)).pallet.destination, 'FR');
        assert.deepEqual(await held.release(), [undefined]);

        await row(page, pallet).getByText('→ FR').waitFor();
        assert.equal((await ask(`{ pallet(number: "${pallet}") { destination } }`)).pallet.destination, 'FR');
      }));

    test('a change that comes too late is taken back, and says why', () =>
      visit(`#/${number}/${pallet}`, async (page) => {
        const held = await hold(page, /Destination/);
        await page.getByLabel('Destination').fill('NO');
        await page.getByRole('button', { name: 'Save' }).click();
        await row(page, pallet).getByText('→ NO').waitFor();
        await ask(`mutation { updatePallet(key: {number: "${pallet}"}, set: {destination: "IE"}) { pallet { id } } }`);

        assert.deepEqual(await held.release(), ['CONDITION_FAILED']);

        await row(page, pallet).getByText('→ IE').waitFor();
        await page.getByRole('alert').waitFor();
      }));

    test('a box is marked, by keyboard', () =>
      visit(`#/${number}/${pallet}`, async (page) => {
        const box = page.getByRole('checkbox').first();
        const was = await box.isChecked();
        await box.focus();
        const marked = page.waitForResponse((response) => /DangerMutation|Mark/.test(response.request().postData() ?? ''));
        await page.keyboard.press('Space');
        assert.equal((await (await marked).json()).errors, undefined);

        await page.reload();
        await page.getByRole('checkbox').first().waitFor();
        assert.equal(await page.getByRole('checkbox').first().isChecked(), !was);
      }));

    test('what others do arrives', () =>
      visit(`#/${number}/${pallet}`, async (page, sockets) => {
        await sockets(2);
        // What was sent may not have arrived: only an event tells that the server follows.
        for (const destination of ['IT', 'ES', 'PT', 'GR', 'MT']) {
          await ask(`mutation { updatePallet(key: {number: "${pallet}"}, set: {destination: "${destination}"})
            { pallet { id } } }`);
          const told = row(page, pallet).getByText(`→ ${destination}`).waitFor({ timeout: 2000 });
          if (await told.then(() => true, () => destination === 'MT' && assert.fail('Nothing arrives'))) break;
        }
        assert.match(await row(page, pallet).innerText(), new RegExp(`→ ${await page.getByLabel('Destination').inputValue()}`));

        const late = `${pallet}-late`;
        const key = `container: {number: "${number}"}, pallet: {number: "${late}"}`;
        await ask(`mutation { createPallet(input: {number: "${late}", origin: "EC", container: {container:
          {number: "${number}"}, linkedDatetime: "2026-01-01T00:00:00Z", linkedBy: "night shift"}}) { pallet { id } } }`);
        await row(page, late).getByText('night shift').waitFor();
        const numbers = await page.getByRole('row').getByRole('link').allInnerTexts();
        assert.deepEqual(numbers, numbers.toSorted());

        await ask(`mutation { updatePalletLoading(key: {${key}}, set: {linkedBy: "day shift"})
          { palletLoading { linkedBy } } }`);
        await row(page, late).getByText('day shift').waitFor();
        await ask(`mutation { deletePalletLoading(key: {${key}}) { palletLoading { linkedBy } } }`);
        await row(page, late).waitFor({ state: 'detached' });
        await ask(`mutation { deletePallet(key: {number: "${late}"}) { deletedId } }`);
      }));

    test('an error stays in its column', () =>
      visit(`#/${'9'.repeat(3000)}`, async (page) => {
        await page.getByRole('alert').getByText('may hold 1024 bytes').waitFor();
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.getByRole('alert').waitFor();
        await count(page.getByRole('region', { name: 'Containers', exact: true }).getByRole('link'), 12);
        await page.goto(page.url().replace(/#.*/, '#/none'));
        await page.getByText('There is no container none').waitFor();
      }, { mayLog: /may hold 1024 bytes/ }));

    for (const colorScheme of ['light', 'dark']) {
      test(`looks right in the ${colorScheme}`, () =>
        visit(`#/${number}/${pallet}`, async (page) => {
          await count(page.getByRole('listitem').filter({ hasText: 'kg' }), 8);
          const ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
          const [red] = ground.match(/\d+/g).map(Number);
          assert.equal(red < 128, colorScheme === 'dark');
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.equal(width, PICTURE.width, 'The page is wider than its window');
          if (SCREENSHOTS && colorScheme === picture) await page.screenshot({ path: join(ROOT, app, 'screenshot.png') });
        }, { colorScheme }));
    }

    test('asks by name where only trusted documents are taken', async (t) => {
      if (!TRUSTING_URL) return t.skip('No TRUSTING_URL');
      const proxy = { '/graphql': { target: TRUSTING_URL, ws: true } };
      const built = await preview({
        root: join(ROOT, app),
        build: { outDir: 'dist-persisted' },
        preview: { port: 0, host: '127.0.0.1', proxy },
      });
      try {
        await visitSite(built.resolvedUrls.local[0], '#/009998/B021002', async (page, sockets) => {
          await count(page.getByRole('checkbox'), 2);
          await sockets(2);
          const sent = page.waitForRequest((request) => /Destination/.test(request.postData() ?? ''));
          await page.getByLabel('Destination').fill(app);
          await page.keyboard.press('Enter');
          assert.equal((await sent).postDataJSON().query, undefined);
          assert.equal((await (await (await sent).response()).json()).errors, undefined);
          await row(page, 'B021002').getByText(`→ ${app}`).waitFor();
        });
      } finally {
        await built.close();
      }
    });
  });
}

const row = (page, pallet) =>
  page.getByRole('row').filter({ has: page.getByRole('link', { name: pallet, exact: true }) });

const count = async (locator, expected) => {
  await locator.nth(expected - 1).waitFor();
  assert.equal(await locator.count(), expected);
};

/** Keep back what is sent of some operations; give what lets it go, and tells the errors' codes that were answered. */
async function hold(page, operations) {
  const let_go = Promise.withResolvers?.() ?? deferred();
  const answered = page.waitForResponse((response) => operations.test(response.request().postData() ?? ''));
  await page.route('**/graphql', async (route) => {
    if (operations.test(route.request().postData() ?? '')) await let_go.promise;
    await route.continue();
  });
  return {
    release: async () => {
      let_go.resolve();
      const { errors } = await (await answered).json();
      return [errors?.[0].extensions.code];
    },
  };
}

function deferred() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

/** Open a page in a fresh profile, check it, and hold it to the rules that every page keeps. */
async function visitSite(url, path, check, { colorScheme = 'light', mayLog } = {}) {
  const origin = new URL(url).origin;
  const context = await browser.newContext({ colorScheme, viewport: PICTURE });
  const errors = [];
  const strangers = [];
  let followed = 0;
  context.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  context.on('weberror', (webError) => errors.push(String(webError.error())));
  context.on('request', (request) => {
    const { protocol, origin: host } = new URL(request.url());
    if (!['data:', 'blob:'].includes(protocol) && host !== origin) strangers.push(request.url());
  });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(8000);
    page.on('websocket', (socket) => {
      if (new URL(socket.url()).host !== new URL(url).host) strangers.push(socket.url());
      socket.on('framesent', ({ payload }) => (followed += /"type":"subscribe"/.test(payload)));
    });
    await page.goto(url + path);
    await check(page, async (wanted) => {
      for (const until = Date.now() + 10_000; followed < wanted && Date.now() < until; ) await page.waitForTimeout(20);
      assert.ok(followed >= wanted, `The page follows ${followed}`);
      // An answer on the same server shows that what was sent before it has arrived.
      await ask('{ __typename }');
    });
    const unexpected = errors.filter((text) => !mayLog?.test(text));
    assert.deepEqual(unexpected, [], 'The console shows errors');
    assert.deepEqual(strangers, [], 'The page asks other hosts');
  } finally {
    await context.close();
  }
}

/** Run an operation past the page; give its data. */
async function ask(query) {
  const response = await fetch(new URL('/graphql', TABLEGRAPH_URL), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  assert.ok(data && !errors, JSON.stringify(errors));
  return data;
}
