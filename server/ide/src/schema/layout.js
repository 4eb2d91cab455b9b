/*
 * From the model's outline to a picture: cards for types, lines for what connects them, laid out in layers by ELK.
 *
 * Layered twice: the first time, from the most linked type outwards or as the model has it, whichever fits the window
 * better, says which card is left of which, so that the second can have each line leave from the row of its field, on
 * the side that looks to the other card.
 */
import ELK from 'elkjs/lib/elk.bundled.js';

export const ROW = 20;
export const HEAD = 30;
const PADDING = 12;
const FONT = '12px system-ui, sans-serif';
const LAYERED = {
  'elk.algorithm': 'layered',
  'elk.direction': 'RIGHT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.spacing.nodeNodeBetweenLayers': '54',
  'elk.layered.spacing.edgeNodeBetweenLayers': '18',
  'elk.spacing.nodeNode': '34',
  'elk.spacing.edgeNode': '16',
  'elk.spacing.edgeEdge': '10',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '10',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.crossingMinimization.thoroughness': '20',
  'elk.separateConnectedComponents': 'true',
  'elk.spacing.componentComponent': '50',
  'elk.aspectRatio': '1.7',
};

const elk = new ELK();
const pen = document.createElement('canvas').getContext('2d');

function widthOf(text, font = FONT) {
  pen.font = font;
  return pen.measureText(text).width;
}

/** Make the cards: node types, and those items between nodes that a relationship leads to themselves. */
export function cardsOf(outline, hasAttributes) {
  const reached = new Set(outline.links.map(({ to }) => to));
  return outline.types
    .filter(({ isNode, name }) => isNode || reached.has(name))
    .map((type) => {
      const links = new Map(outline.links.filter(({ from }) => from === type.name).map((link) => [link.field, link]));
      const shown = type.fields.filter(({ name, isKey }) => isKey || links.has(name) || hasAttributes);
      const rows = shown.map((field) => ({ ...field, link: links.get(field.name) }));
      const left = type.fields.length - shown.length;
      const texts = rows.map(
        ({ name, type: of, link }) => widthOf(`${name}  ${of}`) + (link ? tagWidth(link) + 14 : 0),
      );
      const width = Math.max(
        120,
        widthOf(type.name, '600 13px system-ui, sans-serif') + 50,
        ...texts.map((text) => text + 34),
      );
      return { ...type, rows, left, width: Math.ceil(width), height: HEAD + rows.length * ROW + (left ? ROW : 0) + 6 };
    });
}

export function tagWidth({ index }) {
  return widthOf(index, '10px system-ui, sans-serif') + 10;
}

/** Make the lines: the two directions of one thing in the table are one line, with a row at each end. */
export function linesOf(outline, cards) {
  const names = new Set(cards.map(({ name }) => name));
  const lines = [];
  for (const link of outline.links.filter(({ from, to }) => names.has(from) && names.has(to))) {
    const back = lines.find(
      (line) =>
        line.id === link.id &&
        line.from === link.to &&
        line.to === link.from &&
        !line.back &&
        line.there.field !== link.field,
    );
    if (back) back.back = link;
    else lines.push({ id: link.id, from: link.from, to: link.to, there: link, back: null });
  }
  return lines.map((line) => ({
    ...line,
    key: `${line.from}.${line.there.field} ${line.to}`,
    through: line.there.through,
  }));
}

/** Count the steps to each card from the most linked one of those that hang together: so pictures stay compact. */
function stepsOf(cards, lines) {
  const besides = new Map(cards.map(({ name }) => [name, []]));
  for (const { from, to } of lines) {
    besides.get(from).push(to);
    besides.get(to).push(from);
  }
  const steps = new Map();
  for (const [name] of [...besides].sort(([, one], [, other]) => other.length - one.length)) {
    if (steps.has(name)) continue;
    steps.set(name, 0);
    const queue = [name];
    for (const next of queue) {
      for (const beside of besides.get(next)) {
        if (steps.has(beside)) continue;
        steps.set(beside, steps.get(next) + 1);
        queue.push(beside);
      }
    }
  }
  return steps;
}

/** Place everything, for a window of some size: cards get x and y, lines points and their label's place. */
export async function layOut(cards, lines, window) {
  const steps = stepsOf(cards, lines);
  const label = ({ there }) => (there.path.length ? `by ${there.path.join('.')}` : there.through.join(', '));
  const labels = (line) =>
    label(line)
      ? [{ text: label(line), width: widthOf(label(line), '11px system-ui, sans-serif') + 8, height: 16 }]
      : [];
  const layered = (isLeft) =>
    elk.layout({
      id: 'all',
      layoutOptions: LAYERED,
      children: cards.map(({ name, width, height }) => ({ id: name, width, height })),
      edges: lines.map((line) => {
        const [source, target] = isLeft(line) ? [line.from, line.to] : [line.to, line.from];
        return { id: line.key, sources: [source], targets: [target], labels: labels(line) };
      }),
    });
  const orders = [(line) => steps.get(line.from) <= steps.get(line.to), () => true];
  const tried = await Promise.all(orders.map(layered));
  const zoomOf = ({ width, height }) => Math.min(window.width / width, window.height / height);
  const first = tried.reduce((best, other) => (zoomOf(other) > zoomOf(best) ? other : best));
  const x = new Map(first.children.map((child) => [child.id, child.x]));
  const byName = new Map(cards.map((card) => [card.name, card]));
  const ports = new Map(cards.map(({ name }) => [name, new Map()]));
  const portAt = (type, field, side) => {
    const card = byName.get(type);
    const row = card.rows.findIndex(({ name }) => name === field);
    const id = `${type} ${row} ${side}`;
    const y = row < 0 ? HEAD / 2 : HEAD + (row + 0.5) * ROW;
    const port = {
      id,
      x: side === 'EAST' ? card.width : 0,
      y,
      width: 0,
      height: 0,
      layoutOptions: { 'elk.port.side': side },
    };
    ports.get(type).set(id, port);
    return id;
  };
  const edges = lines.map((line) => {
    const isLeft = x.get(line.from) <= x.get(line.to);
    const [left, right] = isLeft ? [line.from, line.to] : [line.to, line.from];
    const [leftField, rightField] = isLeft
      ? [line.there.field, line.back?.field]
      : [line.back?.field, line.there.field];
    const isLoop = line.from === line.to;
    const source = portAt(left, leftField, 'EAST');
    const target = portAt(right, rightField, isLoop ? 'EAST' : 'WEST');
    return { id: line.key, sources: [source], targets: [target], labels: labels(line), isLeft };
  });
  const placed = await elk.layout({
    id: 'all',
    layoutOptions: LAYERED,
    children: cards.map(({ name, width, height }) => ({
      id: name,
      width,
      height,
      ports: [...ports.get(name).values()],
      layoutOptions: { 'elk.portConstraints': 'FIXED_POS' },
    })),
    edges: edges.map(({ isLeft, ...edge }) => edge),
  });
  const places = new Map(placed.children.map((child) => [child.id, child]));
  const routes = new Map(placed.edges.map((edge) => [edge.id, edge]));
  return {
    width: placed.width,
    height: placed.height,
    cards: cards.map((card) => ({ ...card, x: places.get(card.name).x, y: places.get(card.name).y })),
    lines: lines.map((line, index) => {
      const route = routes.get(line.key);
      const { startPoint, bendPoints = [], endPoint } = route.sections[0];
      const points = [startPoint, ...bendPoints, endPoint];
      const place = route.labels?.[0];
      return { ...line, points: edges[index].isLeft ? points : points.reverse(), label: place && { ...place } };
    }),
  };
}
