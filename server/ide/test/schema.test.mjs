/*
 * The picture of the model as a person meets it.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { authorization, large, picture, visit } from './browser.mjs';

for (const colorScheme of ['light', 'dark']) {
  test(`types, what connects them, and the index that serves it: ${colorScheme}`, () =>
    visit(
      '/schema',
      async (page) => {
        const container = card(page, 'Container');
        await container.waitFor();
        assert.deepEqual(await texts(container), [
          'Container',
          'number ID!',
          'operator String',
          'pallets [Pallet!]!',
          'table',
          'boxes [Box!]!',
          'table',
        ]);
        assert.deepEqual(await texts(card(page, 'Box')).then((all) => all.slice(-2)), [
          'pallet Pallet',
          'reverse-lookup-index',
        ]);

        await container.click();
        const type = page.getByRole('region', { name: 'Type' });
        await type.getByText('objectId = CONTAINER_{number}', { exact: true }).first().waitFor();
        await type.getByText('objectId = CONTAINER_{number} and relatedObjectId begins with PALLET_').waitFor();
        await picture(page, `schema-${colorScheme}`);
      },
      { colorScheme },
    ));
}

test('a relationship tells what it goes through, in both directions, by the keyboard', () =>
  visit('/schema', async (page) => {
    const line = page.getByRole('button', { name: 'Container pallets Pallet' });
    await line.focus();
    await page.keyboard.press('Enter');
    const details = page.getByRole('region', { name: 'Relationship' });
    await details.getByRole('heading', { name: 'Container.pallets / Pallet.container' }).waitFor();
    await details.getByText('1 Query of reverse-lookup-index').waitFor();
    await details.getByText('relatedObjectId = {pallet}').first().waitFor();

    const before = await sight(page);
    await page.keyboard.press('+');
    await page.waitForURL(/v=/);
    assert.notEqual(await sight(page), before);
    const [url, seen] = [page.url(), await sight(page)];
    await page.goto('about:blank');
    await page.goto(url);
    await details.waitFor();
    assert.equal(await sight(page), seen);
    await page.keyboard.press('Escape');
  }));

test('25 types with 60 relationships stay readable', { skip: !large }, () =>
  visit(
    '/schema',
    async (page) => {
      await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor();
      await page.getByRole('button', { name: 'Headers' }).click();
      await page.getByLabel('Headers, as JSON').fill(JSON.stringify(authorization));
      await page.getByRole('button', { name: 'Use them' }).click();
      await page.locator('.card').first().waitFor();

      const boxes = await page
        .locator('.card .sheet')
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
      assert.equal(boxes.length, 27);
      const meet = (one, other) =>
        one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
      assert.ok(
        !boxes.some((one, index) => boxes.some((other, next) => next > index && meet(one, other))),
        'Cards overlap',
      );
      assert.equal(await page.locator('g.line').count(), 30);
      await picture(page, 'schema-large-light');
      await card(page, 'T5').click();
      await page.getByRole('region', { name: 'Type' }).getByText('T5.to5', { exact: true }).waitFor();
    },
    { at: large, allowed: [/status of 401/], viewport: { width: 1500, height: 900 } },
  ),
);

test('the picture is saved as SVG and as PNG, whole', () =>
  visit('/schema', async (page) => {
    await card(page, 'Box').waitFor();
    const svg = (await save(page, 'Save SVG', 'banana-delivery-schema.svg')).toString();
    for (const text of ['Container', 'weightInKg', 'reverse-lookup-index', 'PalletLoading'])
      assert.ok(svg.includes(text), text);
    assert.ok(!svg.includes('var('), 'It needs the page for its colours');
    const png = await save(page, 'Save PNG', 'banana-delivery-schema.png');
    assert.equal(png.subarray(1, 4).toString(), 'PNG');
    assert.ok(png.readUInt32BE(16) > 1200, 'It is small');
  }));

function card(page, name) {
  return page.locator('.card').and(page.getByRole('button', { name, exact: true }));
}

function texts(card) {
  return card.locator('text').allTextContents();
}

function sight(page) {
  return page.locator('.picture > g').getAttribute('transform');
}

async function save(page, button, name) {
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: button }).click();
  const saved = await saving;
  assert.equal(saved.suggestedFilename(), name);
  return readFile(await saved.path());
}
