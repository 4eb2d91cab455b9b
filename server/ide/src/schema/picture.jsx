/* The picture itself, as SVG: it can be saved as it is. */
import { useEffect, useRef } from 'react';
import { HEAD, ROW, tagWidth } from './layout';

const CORNER = 7;
const LEAST = 0.15;
const MOST = 3;

export function Picture({ picture, view, hueOfIndex, chosen, onSelect, onMove }) {
  const svg = useRef();
  const { cards, lines } = picture;
  const beside = besides(chosen, lines);
  const stateOf = (key) => (key === chosen ? 'chosen' : beside && !beside.has(key) ? 'apart' : '');

  const drag = useRef(null);
  const onPointerDown = (event) => {
    if (event.button) return;
    drag.current = { x: event.clientX, y: event.clientY, view, hasMoved: false };
  };
  const onPointerMove = (event) => {
    const from = drag.current;
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.hasMoved && Math.hypot(dx, dy) < 4) return;
    if (!from.hasMoved) svg.current.setPointerCapture(event.pointerId);
    from.hasMoved = true;
    onMove({ ...from.view, x: from.view.x + dx, y: from.view.y + dy });
  };
  const onPointerUp = () => {
    const hasMoved = drag.current?.hasMoved;
    drag.current = null;
    return hasMoved;
  };
  const hasDragged = useRef(false);

  // React listens to wheels passively, and then nothing keeps the page from scrolling.
  const latest = useRef();
  latest.current = { view, onMove };
  useEffect(() => {
    const zoom = (event) => {
      event.preventDefault();
      const { left, top } = svg.current.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015));
      latest.current.onMove(zoomed(latest.current.view, factor, event.clientX - left, event.clientY - top));
    };
    const element = svg.current;
    element.addEventListener('wheel', zoom, { passive: false });
    return () => element.removeEventListener('wheel', zoom);
  }, []);

  const choose = (key) => (event) => {
    event.stopPropagation();
    if (!hasDragged.current) onSelect(key);
  };
  const press = (key) => (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    event.stopPropagation();
    onSelect(key);
  };

  return (
    <svg
      ref={svg}
      className="picture"
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={() => (hasDragged.current = Boolean(onPointerUp()))}
      onClick={() => hasDragged.current || onSelect(null)}
    >
      <title>The model: its types, and what connects them</title>
      <g transform={`translate(${view.x} ${view.y}) scale(${view.zoom})`}>
        {lines.map((line) => (
          <g
            key={line.key}
            className={`line ${stateOf(line.key)} ${line.there.path.length ? 'derived' : ''}`}
            role="button"
            tabIndex={0}
            aria-label={`${line.from} ${line.there.field} ${line.to}`}
            onClick={choose(line.key)}
            onKeyDown={press(line.key)}
          >
            <path className="wide" d={pathOf(line.points)} />
            <path d={pathOf(line.points)} />
            <End points={[...line.points].reverse()} isMany={line.there.isMany} />
            {line.back && <End points={line.points} isMany={line.back.isMany} />}
            {line.label && (
              <g transform={`translate(${line.label.x} ${line.label.y})`}>
                <rect className="label" width={line.label.width} height={line.label.height} rx="4" />
                <text x={line.label.width / 2} y="12" textAnchor="middle" fontSize="11">
                  {line.label.text}
                </text>
              </g>
            )}
          </g>
        ))}
        {cards.map((card) => (
          <g
            key={card.name}
            className={`card ${stateOf(card.name)} ${card.isNode ? '' : 'between'}`}
            transform={`translate(${card.x} ${card.y})`}
            role="button"
            tabIndex={0}
            aria-label={card.name}
            onClick={choose(card.name)}
            onKeyDown={press(card.name)}
          >
            <rect className="sheet" width={card.width} height={card.height} rx={CORNER} />
            <path className="head" d={topOf(card.width)} />
            <text className="name" x="12" y="20" fontSize="13" fontWeight="600">
              {card.name}
            </text>
            {(card.isVirtual || !card.isNode) && (
              <text className="faint" x={card.width - 10} y="19" textAnchor="end" fontSize="10">
                {card.isVirtual ? 'virtual' : 'edge'}
              </text>
            )}
            {card.rows.map((row, index) => (
              <Row key={row.name} row={row} width={card.width} y={HEAD + index * ROW} hueOfIndex={hueOfIndex} />
            ))}
            {card.left > 0 && (
              <text className="faint" x="12" y={HEAD + card.rows.length * ROW + 14} fontSize="11">
                + {card.left} more
              </text>
            )}
          </g>
        ))}
      </g>
    </svg>
  );
}

function Row({ row, width, y, hueOfIndex }) {
  const tag = row.link && tagWidth(row.link);
  return (
    <g>
      <text x="12" y={y + 14} fontSize="12" fontWeight={row.isKey ? 600 : 400}>
        {row.name}{' '}
        <tspan className="faint" dx="3">
          {row.type}
        </tspan>
      </text>
      {row.link && (
        <g transform={`translate(${width - tag - 8} ${y + 3})`}>
          <rect width={tag} height="14" rx="7" fill={hueOfIndex(row.link.index)} />
          <text className="tag" x={tag / 2} y="10.5" textAnchor="middle" fontSize="10">
            {row.link.index}
          </text>
        </g>
      )}
    </g>
  );
}

/** Draw a line's end: an arrow to one, a crow's foot to many. */
function End({ points: [tip, before], isMany }) {
  const way = Math.sign(tip.x - before.x) || 1;
  const { x, y } = tip;
  const d = isMany
    ? `M${x - 11 * way} ${y}L${x} ${y - 6}M${x - 11 * way} ${y}L${x} ${y}M${x - 11 * way} ${y}L${x} ${y + 6}`
    : `M${x - 8 * way} ${y - 5}L${x} ${y}L${x - 8 * way} ${y + 5}`;
  return <path className="end" d={d} />;
}

function pathOf([start, ...points]) {
  let path = `M${start.x} ${start.y}`;
  points.forEach((point, index) => {
    const next = points[index + 1];
    const before = index ? points[index - 1] : start;
    if (!next) {
      path += `L${point.x} ${point.y}`;
      return;
    }
    const round = (to) => {
      const far = Math.hypot(to.x - point.x, to.y - point.y) || 1;
      const part = Math.min(6, far / 2) / far;
      return `${point.x + (to.x - point.x) * part} ${point.y + (to.y - point.y) * part}`;
    };
    path += `L${round(before)}Q${point.x} ${point.y} ${round(next)}`;
  });
  return path;
}

function topOf(width) {
  return `M0 ${HEAD}V${CORNER}Q0 0 ${CORNER} 0H${width - CORNER}Q${width} 0 ${width} ${CORNER}V${HEAD}Z`;
}

/** List what stays clear when something is chosen; null where nothing is. */
function besides(chosen, lines) {
  if (!chosen) return null;
  const found = lines.filter(({ key, from, to }) => [key, from, to].includes(chosen));
  return new Set([chosen, ...found.flatMap(({ key, from, to }) => [key, from, to])]);
}

export function zoomed({ x, y, zoom }, factor, atX, atY) {
  const next = Math.min(MOST, Math.max(LEAST, zoom * factor));
  const part = next / zoom;
  return { x: atX - (atX - x) * part, y: atY - (atY - y) * part, zoom: next };
}

/** Write the whole picture, at its own size, with its colours as they are, as SVG that stands alone. */
export function svgOf(element, { width, height }) {
  const copy = element.cloneNode(true);
  const margin = 24;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', width + 2 * margin);
  copy.setAttribute('height', height + 2 * margin);
  copy.querySelector('g').setAttribute('transform', `translate(${margin} ${margin})`);
  const kept = [
    'fill',
    'stroke',
    'stroke-width',
    'stroke-dasharray',
    'opacity',
    'font-family',
    'fill-opacity',
    'stroke-opacity',
  ];
  const originals = element.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((one, index) => {
    const style = getComputedStyle(originals[index]);
    for (const name of kept) one.setAttribute(name, style.getPropertyValue(name));
    for (const name of ['class', 'role', 'tabindex', 'aria-label']) one.removeAttribute(name);
  });
  const page = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  page.setAttribute('width', '100%');
  page.setAttribute('height', '100%');
  page.setAttribute('fill', getComputedStyle(document.body).backgroundColor);
  copy.insertBefore(page, copy.querySelector('g'));
  for (const name of ['class', 'style']) copy.removeAttribute(name);
  return new XMLSerializer().serializeToString(copy);
}

export async function pngOf(text, { width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  // Browsers refuse canvases that are much larger.
  const scale = Math.min(2, 8000 / Math.max(width, height));
  canvas.width = image.width * scale;
  canvas.height = image.height * scale;
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}
