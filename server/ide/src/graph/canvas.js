/* The drawing: Cytoscape.js, told what to show. */
import cytoscape from 'cytoscape';
import fcose from 'cytoscape-fcose';
import { hueOf } from '../shell';

cytoscape.use(fcose);

const SHAPES = ['ellipse', 'round-rectangle', 'diamond', 'hexagon', 'round-triangle'];
const MANY = 150;
const SPACE = 40;
const FONT = 11;
/** How many of the most linked nodes have a label that can be read however far one is away. */
const HUBS = 40;
const HUB_DEGREE = 4;

/** Give the look of the nth type: colour and shape together tell more types apart than there are colours. */
export function lookOf(index) {
  return { hue: hueOf(index), shape: SHAPES[index % SHAPES.length] };
}

export class Canvas {
  constructor(container, { onSelect, onExpand, onReady }) {
    this.cy = cytoscape({ container, minZoom: 0.05, maxZoom: 4, selectionType: 'single', boxSelectionEnabled: false });
    this.onReady = onReady;
    this.isFirst = true;
    this.cy.on('tap', (event) => onSelect(event.target === this.cy ? null : event.target.id()));
    this.cy.on('dbltap', 'node', (event) => onExpand(event.target.id()));
    this.cy.on('mouseover', 'node, edge', (event) => event.target.addClass('near'));
    this.cy.on('mouseout', 'node, edge', (event) => event.target.removeClass('near'));
    this.cy.on('zoom', () => this.label());
    this.recolour();
  }

  /** Take the page's colours as they are now. */
  recolour() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.background = colour('--page');
    this.cy.style(styleOf(colour)).update();
  }

  /** Show a graph: what is new comes in beside what it was reached from. */
  show(graph, typeNames, hidden) {
    const { cy } = this;
    const added = [];
    const looks = new Map(typeNames.map((name, index) => [name, lookOf(index)]));
    cy.batch(() => {
      cy.elements().forEach((one) => {
        if (!graph.nodes.has(one.id()) && !graph.edges.has(one.id())) one.remove();
      });
      for (const node of graph.nodes.values()) {
        const data = { label: node.label, ...looks.get(node.type), type: node.type };
        const known = cy.getElementById(node.id);
        if (known.length) known.data(data);
        else
          added.push(
            cy.add({ group: 'nodes', data: { id: node.id, ...data }, position: this.near(node, added.length) }),
          );
      }
      for (const edge of graph.edges.values()) {
        const data = { name: edge.names.join(' / ') };
        const known = cy.getElementById(edge.id);
        if (known.length) known.data(data);
        else added.push(cy.add({ group: 'edges', data: { ...edge, items: undefined, ...data } }));
      }
      cy.nodes().forEach((node) => node.data('size', 22 + Math.min(34, 5 * Math.sqrt(node.degree(false)))));
      const linked = cy.nodes().filter((node) => node.degree(false) >= HUB_DEGREE);
      this.hubs = linked.sort((one, other) => other.degree(false) - one.degree(false)).slice(0, HUBS);
      cy.elements().removeClass('hidden');
      cy.nodes()
        .filter((node) => hidden.includes(node.data('type')))
        .addClass('hidden');
      cy.edges()
        .filter((edge) => graph.edges.get(edge.id()).names.every((name) => hidden.includes(`.${name}`)))
        .addClass('hidden');
    });
    if (added.length) this.arrange(this.isFirst);
    else this.onReady();
    this.isFirst &&= !cy.nodes().length;
  }

  /** Have the labels of hubs at the size at which they can be read. */
  label() {
    this.hubs?.style({ 'font-size': Math.max(FONT, FONT / this.cy.zoom()), 'z-index': 5 });
  }

  near({ from }, count) {
    const origin = from && this.cy.getElementById(from);
    const { x, y } = origin?.length ? origin.position() : { x: 0, y: 0 };
    // The sunflower's turn: no two of them at one place.
    const turn = count * 2.39996;
    const far = origin?.length ? 60 + 3 * Math.sqrt(count) : 30 * Math.sqrt(count);
    return { x: x + far * Math.cos(turn), y: y + far * Math.sin(turn) };
  }

  /** Lay everything out; anew, or from where it is. */
  arrange(anew) {
    const shown = this.cy.elements().not('.hidden');
    const isLarge = shown.nodes().length > MANY;
    const isCalm = isLarge || anew || matchMedia('(prefers-reduced-motion: reduce)').matches;
    const layout = shown.layout({
      name: 'fcose',
      quality: 'default',
      randomize: anew,
      animate: !isCalm,
      animationDuration: 350,
      padding: SPACE,
      nodeSeparation: 90,
      nodeRepulsion: 9000,
      idealEdgeLength: (edge) => 55 + edge.source().data('size') + edge.target().data('size'),
      gravity: 0.3,
      numIter: 2500,
      tile: true,
    });
    layout.one('layoutstop', () => {
      if (isCalm) {
        separate(shown.nodes());
        this.fit();
      }
      // A few nodes need not fill the window.
      if (this.cy.zoom() > 1.4) this.cy.zoom(1.4) && this.cy.center(shown);
      this.label();
      this.onReady();
    });
    layout.run();
  }

  select(id) {
    const { cy } = this;
    cy.elements().removeClass('chosen beside apart');
    const one = id ? cy.getElementById(id) : cy.collection();
    if (!one.length) return;
    const beside = one.isNode() ? one.closedNeighborhood() : one.union(one.connectedNodes());
    cy.elements().addClass('apart');
    beside.removeClass('apart').addClass('beside');
    one.addClass('chosen');
    const { x1, y1, x2, y2 } = cy.extent();
    const at = one.isNode() ? one.position() : one.midpoint();
    if (at.x < x1 || at.x > x2 || at.y < y1 || at.y > y2) cy.center(one);
  }

  /** Find the nearest node in a direction; without one to start from, the first. */
  towards(id, [dx, dy]) {
    const nodes = this.cy.nodes().not('.hidden');
    const from = this.cy.getElementById(id ?? '');
    if (!from.length || !from.isNode()) return nodes[0]?.id();
    const { x, y } = from.position();
    let best = null;
    nodes.forEach((node) => {
      const [ax, ay] = [node.position('x') - x, node.position('y') - y];
      const along = ax * dx + ay * dy;
      const aside = Math.abs(ax * dy) + Math.abs(ay * dx);
      if (node.id() === id || along <= 0 || aside > 2 * along) return;
      const far = along + 2 * aside;
      if (!best || far < best.far) best = { far, id: node.id() };
    });
    return best?.id ?? id;
  }

  zoom(factor) {
    const { cy } = this;
    cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  }

  pan(dx, dy) {
    this.cy.panBy({ x: dx, y: dy });
  }

  fit() {
    this.cy.fit(this.cy.elements().not('.hidden'), SPACE);
  }

  png() {
    return this.cy.png({
      output: 'blob-promise',
      full: true,
      scale: 2,
      maxWidth: 6000,
      maxHeight: 6000,
      bg: this.background,
    });
  }

  destroy() {
    this.cy.destroy();
  }
}

/** Push apart what lies on each other. */
function separate(nodes) {
  const places = nodes.map((node) => ({ node, ...node.position(), radius: node.data('size') / 2 + 3 }));
  let hasMoved = true;
  for (let round = 0; hasMoved && round < 60; round++) {
    hasMoved = false;
    places.forEach((one, index) => {
      for (const other of places.slice(index + 1)) {
        const [dx, dy] = [other.x - one.x, other.y - one.y];
        const lacking = one.radius + other.radius - Math.hypot(dx, dy);
        if (lacking <= 0) continue;
        const far = Math.hypot(dx, dy) || 1;
        const [mx, my] = [((dx || 1) / far) * (lacking / 2 + 0.5), (dy / far) * (lacking / 2 + 0.5)];
        one.x -= mx;
        one.y -= my;
        other.x += mx;
        other.y += my;
        hasMoved = true;
      }
    });
  }
  nodes.positions((node, index) => ({ x: places[index].x, y: places[index].y }));
}

function styleOf(colour) {
  return [
    {
      selector: 'node',
      style: {
        'background-color': 'data(hue)',
        shape: 'data(shape)',
        width: 'data(size)',
        height: 'data(size)',
        label: 'data(label)',
        color: colour('--text'),
        'font-size': FONT,
        'font-family': 'system-ui, sans-serif',
        'min-zoomed-font-size': 7,
        'text-valign': 'bottom',
        'text-margin-y': 3,
        'text-max-width': 110,
        'text-wrap': 'ellipsis',
        'text-outline-color': colour('--page'),
        'text-outline-width': 2,
        'border-width': 1.5,
        'border-color': colour('--page'),
      },
    },
    {
      selector: 'edge',
      style: {
        width: 1.4,
        'line-color': colour('--faint'),
        'line-opacity': 0.55,
        'curve-style': 'bezier',
        'target-arrow-shape': 'triangle',
        'target-arrow-color': colour('--faint'),
        'arrow-scale': 0.8,
      },
    },
    {
      selector: 'edge.near, edge.chosen',
      style: {
        label: 'data(name)',
        color: colour('--text'),
        'font-size': 10,
        'font-family': 'system-ui, sans-serif',
        'text-rotation': 'autorotate',
        'text-outline-color': colour('--page'),
        'text-outline-width': 2,
        'line-opacity': 1,
        'z-index': 9,
      },
    },
    { selector: 'node.near, node.chosen', style: { 'min-zoomed-font-size': 0, 'text-wrap': 'none', 'z-index': 9 } },
    { selector: '.apart', style: { opacity: 0.32 } },
    { selector: 'node.apart', style: { 'text-opacity': 0 } },
    { selector: 'node.chosen', style: { 'border-color': colour('--accent'), 'border-width': 4 } },
    {
      selector: 'edge.chosen',
      style: { 'line-color': colour('--accent'), 'target-arrow-color': colour('--accent'), width: 3 },
    },
    { selector: 'edge.beside', style: { 'line-opacity': 1 } },
    { selector: '.hidden', style: { display: 'none' } },
  ];
}
