/* What shapes, colours and lines mean; each can be hidden. */
import { lookOf } from './canvas';

const OUTLINES = {
  ellipse: 'circle(50%)',
  'round-rectangle': 'inset(4% round 20%)',
  diamond: 'polygon(50% 0, 100% 50%, 50% 100%, 0 50%)',
  hexagon: 'polygon(25% 6%, 75% 6%, 100% 50%, 75% 94%, 25% 94%, 0 50%)',
  'round-triangle': 'polygon(50% 4%, 100% 94%, 0 94%)',
};

export function Swatch({ typeNames, type }) {
  const { hue, shape } = lookOf(Math.max(0, typeNames.indexOf(type)));
  return <span className="swatch" style={{ background: hue, clipPath: OUTLINES[shape] }} />;
}

export function Legend({ graph, typeNames, hidden, onToggle }) {
  const types = count([...graph.nodes.values()].map(({ type }) => type));
  const fields = count([...graph.edges.values()].flatMap(({ names }) => names));
  if (!types.size) return null;
  return (
    <section className="legend" aria-label="Legend">
      <ul>
        {[...types].map(([type, many]) => (
          <li key={type}>
            <button type="button" aria-pressed={!hidden.includes(type)} onClick={() => onToggle(type)}>
              <Swatch typeNames={typeNames} type={type} /> {type} <small>{many}</small>
            </button>
          </li>
        ))}
        {[...fields].map(([field, many]) => (
          <li key={field}>
            <button type="button" aria-pressed={!hidden.includes(`.${field}`)} onClick={() => onToggle(`.${field}`)}>
              <span className="dash" /> {field} <small>{many}</small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function count(names) {
  const counts = new Map();
  for (const name of names.sort()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
