/*
 * The graph as a person meets it. What a canvas shows is asked of Cytoscape; all else is read off the page.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { ask, authorization, large, origin, picture, visit } from './browser.mjs';

test('a container is looked up and expanded, forward and back, with the fields of nodes and edges', () =>
  visit('/graph', async (page) => {
    await begin(page, 'container', { 'number: ID!': '009998' });
    const node = page.getByRole('region', { name: 'Node' });
    await node.getByRole('row', { name: 'operator TheBoatingCompany' }).waitFor();
    await node.getByRole('button', { name: 'Show pallets' }).click();
    await shown(page, 3);
    assert.deepEqual(await drawn(page), ['Container 009998', 'Pallet B021002', 'Pallet B021003']);

    await node.getByRole('button', { name: '→ pallets B021002' }).click();
    const edge = page.getByRole('region', { name: 'Edge' });
    await edge.getByRole('row', { name: 'linkedBy MyLoadingCompany' }).waitFor();
    await edge.getByRole('button', { name: 'Pallet B021002' }).click();
    await node.getByRole('button', { name: /^Expand/ }).click();
    await shown(page, 5);
    // Back along the same edge: it has two names, and is one.
    await node.getByRole('button', { name: '← pallets / container 009998' }).waitFor();
    assert.equal(await page.evaluate(() => cy.edges().length), 4);
  }));

test('a view is in its link: the same graph for whoever follows it, and Back goes a step back', () =>
  visit('/graph', async (page) => {
    await begin(page, 'container', { 'number: ID!': '009998' });
    await page.getByRole('button', { name: 'Show pallets' }).click();
    await shown(page, 3);
    await page.getByRole('button', { name: 'Container 1' }).click();
    const [link, view] = [page.url(), await drawn(page)];

    await page.goto('about:blank');
    await page.goto(link);
    await shown(page, 3);
    assert.deepEqual(await drawn(page), view);
    await page.getByRole('region', { name: 'Node' }).getByText('Container 009998').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Container 1' }).getAttribute('aria-pressed'), 'false');
    assert.equal(await page.evaluate(() => cy.$('.hidden').length), 1);

    await page.getByRole('button', { name: 'Container 1' }).click();
    await page.getByRole('button', { name: 'Show boxes' }).click();
    await shown(page, 5);
    await page.goBack();
    await shown(page, 3);
  }));

test('everything can be done by the keyboard', () =>
  visit('/graph', async (page) => {
    const select = page.getByLabel('What to begin with');
    await select.focus();
    await select.selectOption('pallet');
    await page.keyboard.press('Tab');
    await page.keyboard.type('B021002');
    await page.keyboard.press('Enter');
    await shown(page, 1);
    await page.getByRole('application').focus();
    await page.keyboard.press('Enter');
    await shown(page, 4);
    const names = new Set();
    for (const key of ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']) {
      await page.keyboard.press('Escape');
      await page.keyboard.press(key);
      await page.keyboard.press(key);
      names.add(await page.locator('[aria-live]').innerText());
    }
    assert.ok(names.size > 1, `The arrows choose ${[...names]}`);
    const zoom = await page.evaluate(() => cy.zoom());
    await page.keyboard.press('+');
    assert.ok((await page.evaluate(() => cy.zoom())) > zoom);
  }));

test('pages come one by one, through the public API', () =>
  visit('/graph', async (page) => {
    const asked = [];
    page.on(
      'request',
      (request) => request.method() === 'POST' && asked.push([new URL(request.url()).pathname, request.postDataJSON()]),
    );
    await begin(page, 'container', { 'number: ID!': 'F0' });
    await page.getByRole('button', { name: 'Show boxes' }).click();
    await shown(page, 26);
    await page.getByText('25 so far').waitFor();
    await page.getByRole('button', { name: 'Show boxes' }).click();
    await shown(page, 51);

    const pages = asked.filter(([, { query }]) => query.includes('boxes'));
    assert.deepEqual([...new Set(asked.map(([path]) => path))], ['/graphql']);
    assert.deepEqual(
      pages.map(([, { variables }]) => [variables.first, Boolean(variables.after)]),
      [
        [25, false],
        [25, true],
      ],
    );
  }));

test('a list gives nodes to begin with', () =>
  visit('/graph', async (page) => {
    await page.getByLabel('What to begin with').selectOption('containers');
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByRole('button', { name: /^Show all/ }).click();
    await page.waitForFunction(() => cy.nodes('[type = "Container"]').length > 3);
  }));

for (const colorScheme of ['light', 'dark']) {
  test(`a view of 500 nodes stays readable: ${colorScheme}`, async () => {
    const link = await fleetView();
    await visit(
      `/graph${link}`,
      async (page) => {
        await shown(page, 507);
        const { overlapping, inSight } = await page.evaluate(measure);
        assert.equal(inSight, 507);
        assert.ok(overlapping < 0.01, `${Math.round(100 * overlapping)} % of the nodes overlap another`);
        if (colorScheme === 'light') await picture(page, 'graph-500-light');

        await page.evaluate(() => cy.nodes('[label = "F1-03"]').emit('tap'));
        await page.getByRole('region', { name: 'Node' }).getByText('Pallet F1-03').waitFor();
        await page.evaluate(() => cy.animate({ fit: { eles: cy.$('.beside'), padding: 90 }, duration: 0 }));
        await page.waitForFunction(() => !cy.animated());
        if (colorScheme === 'dark') await picture(page, 'graph-dark');
      },
      { colorScheme },
    );
  });
}

test('the picture is saved as PNG', () =>
  visit('/graph', async (page) => {
    await begin(page, 'container', { 'number: ID!': '009998' });
    await page.getByRole('button', { name: 'Show pallets' }).click();
    await shown(page, 3);
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save PNG' }).click();
    const saved = await saving;
    assert.equal(saved.suggestedFilename(), 'banana-delivery.png');
    const bytes = await readFile(await saved.path());
    assert.equal(bytes.subarray(1, 4).toString(), 'PNG');
    assert.ok(bytes.length > 3_000, `It has ${bytes.length} bytes`);
  }));

const UNKNOWN_CALLER = /status of 401/;

test(
  'who is not known is told so, and says who it is by headers; what they may not see is named',
  { skip: !large },
  () =>
    visit(
      '/graph',
      async (page) => {
        await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor();
        await giveHeaders(page);
        await begin(page, 'vault', { 'number: ID!': '1' });
        await page.getByRole('alert').getByText('FORBIDDEN').waitFor();
        await page.getByRole('region', { name: 'Node' }).getByRole('row', { name: 'number 1' }).waitFor();
        assert.equal(await page.getByRole('row', { name: /contents/ }).count(), 0);
      },
      { at: large, allowed: [UNKNOWN_CALLER] },
    ),
);

test('what is searched is a way to begin', { skip: !large }, () =>
  visit(
    '/graph',
    async (page) => {
      await giveHeaders(page);
      await begin(page, 'searchHarbours', { 'text: String!': 'guay' });
      await page.getByRole('button', { name: 'Harbour Guayaquil' }).click();
      await shown(page, 1);
    },
    { at: large, allowed: [UNKNOWN_CALLER] },
  ),
);

test('a server that does not answer is told of, and asked again', () =>
  visit(
    '/graph',
    async (page) => {
      await begin(page, 'container', { 'number: ID!': '009998' });
      await shown(page, 1);
      await page.context().setOffline(true);
      await page.getByRole('button', { name: 'Show pallets' }).click();
      await page.getByRole('alert').getByText('does not answer').waitFor();
      await page.context().setOffline(false);
      await page.getByRole('button', { name: 'Try again' }).click();
      await shown(page, 3);
      assert.equal(await page.getByRole('alert').count(), 0);
    },
    { allowed: [/ERR_INTERNET_DISCONNECTED/] },
  ));

test('an id of nothing is said to be one', () =>
  visit('/graph#n=bm90aGluZw', async (page) => {
    await page.getByRole('alert').waitFor();
  }));

/** Fill in what to begin with. */
async function begin(page, name, values) {
  await page.getByLabel('What to begin with').selectOption(name);
  for (const [label, value] of Object.entries(values)) await page.getByLabel(label).fill(value);
  await page.locator('.start button[type=submit]').click();
}

async function giveHeaders(page) {
  await page.getByRole('button', { name: 'Headers' }).click();
  await page.getByLabel('Headers, as JSON').fill('no JSON');
  await page.getByRole('button', { name: 'Use them' }).click();
  await page.getByRole('dialog').getByText('Expected a JSON object').waitFor();
  await page.getByLabel('Headers, as JSON').fill(JSON.stringify(authorization));
  await page.getByRole('button', { name: 'Use them' }).click();
  await page.getByLabel('What to begin with').waitFor();
}

/** Wait until so many nodes are drawn, and lie still. */
function shown(page, count) {
  return page.waitForFunction(
    (count) => cy.nodes().length === count && document.querySelector('.canvas').dataset.arranged === String(count),
    count,
  );
}

function drawn(page) {
  return page.evaluate(() =>
    cy
      .nodes()
      .map((node) => `${node.data('type')} ${node.data('label')}`)
      .sort(),
  );
}

/** Say how many nodes lie in sight, and what part of them overlaps another. */
function measure() {
  const { x1, y1, x2, y2 } = cy.extent();
  const boxes = cy.nodes().map((node) => ({
    ...node.boundingBox({ includeLabels: false, includeOverlays: false }),
    ...node.position(),
    radius: node.width() / 2,
  }));
  const meet = (one, other) => Math.hypot(one.x - other.x, one.y - other.y) < one.radius + other.radius;
  const overlapping = boxes.filter((one) => boxes.some((other) => one !== other && meet(one, other))).length;
  const inSight = boxes.filter((box) => box.x1 >= x1 && box.y1 >= y1 && box.x2 <= x2 && box.y2 <= y2).length;
  return { overlapping: overlapping / boxes.length, inSight };
}

/** Write the link to the fleet: three containers with all their pallets, and those with all their boxes. */
async function fleetView() {
  const parameters = new URLSearchParams();
  for (const number of ['F0', 'F1', 'F2']) {
    const { container } = await ask(`{ container(number: "${number}") { id pallets(first: 50) { nodes { id } } } }`);
    parameters.append('n', container.id);
    parameters.append('e', `${container.id} pallets 1`);
    for (const { id } of container.pallets.nodes) parameters.append('e', `${id} boxes 1`);
  }
  return `#${parameters}`;
}
