/* At the side: where to begin, the node or edge that is chosen, and the nodes as a list. */
import { useEffect, useState } from 'react';
import { Swatch } from './legend';
import { labelOf } from './types';

const KINDS = [
  ['search', 'Search'],
  ['lookup', 'Look up by key'],
  ['list', 'List'],
];
const LISTED = 200;

export function Panel(props) {
  const { source, graph, view } = props;
  const node = graph.nodes.get(view.selected);
  const edge = graph.edges.get(view.selected);
  return (
    <aside className="panel" aria-label="Details">
      {node && <NodeDetails key={node.id} node={node} {...props} />}
      {edge && <EdgeDetails key={edge.id} edge={edge} {...props} />}
      {source && <Start {...props} isOpen={!node && !edge} />}
      {graph.nodes.size > 0 && <NodeList {...props} />}
    </aside>
  );
}

function NodeDetails({ node, source, graph, view, page, typeNames, onSelect, onExpand, onCollapse }) {
  const { relationships = [] } = source?.api.types.get(node.type) ?? {};
  const edges = [...graph.edges.values()].filter(({ source: from, target }) => [from, target].includes(node.id));
  const isExpanded = view.expansions.some(({ id }) => id === node.id);
  const isRemovable = view.roots.includes(node.id) && view.roots.length > 1;
  const query = `{ node(id: "${node.id}") { id ... on ${node.type} { ${Object.keys(node.values)
    .filter((name) => typeof node.values[name] !== 'object')
    .join(' ')} } } }`;
  return (
    <section aria-label="Node">
      <h2>
        <Swatch typeNames={typeNames} type={node.type} /> {node.type} {node.label}
      </h2>
      <Values values={node.values} />
      <p className="faint mono">{node.id}</p>
      <div className="row">
        <a href={`/graphql?${new URLSearchParams({ query })}`}>Query it in GraphiQL</a>
        {(isExpanded || isRemovable) && (
          <button type="button" onClick={() => onCollapse(node.id)}>
            {isRemovable ? 'Take away' : 'Collapse'}
          </button>
        )}
      </div>
      {relationships.length > 0 && (
        <>
          <h3>Relationships</h3>
          <ul className="relationships">
            {relationships.map(({ name, isMany, targets, description }) => {
              const known = node.expanded[name];
              return (
                <li key={name} className="row apart" title={description ?? undefined}>
                  <span>
                    {name} <small>{isMany ? `[${targets.join(' | ')}]` : targets.join(' | ')}</small>
                  </span>
                  <span className="row">
                    {known && <small>{shownOf(known)}</small>}
                    {(!known || known.hasMore) && (
                      <button type="button" onClick={() => onExpand(node.id, [name])} aria-label={`Show ${name}`}>
                        {known ? `${page} more` : 'Show'}
                      </button>
                    )}
                  </span>
                </li>
              );
            })}
          </ul>
          {relationships.some(({ name }) => !node.expanded[name] || node.expanded[name].hasMore) && (
            <p>
              <button type="button" className="primary" onClick={() => onExpand(node.id)}>
                Expand <kbd>Enter</kbd>
              </button>
            </p>
          )}
        </>
      )}
      {edges.length > 0 && (
        <>
          <h3>Edges seen</h3>
          <ul>
            {edges.slice(0, LISTED).map((edge) => {
              const other = graph.nodes.get(edge.source === node.id ? edge.target : edge.source);
              return (
                <li key={edge.id}>
                  <button type="button" className="link" onClick={() => onSelect(edge.id)}>
                    {edge.source === node.id ? '→' : '←'} {edge.names.join(' / ')}{' '}
                    <Swatch typeNames={typeNames} type={other.type} /> {other.label}
                  </button>
                </li>
              );
            })}
          </ul>
        </>
      )}
    </section>
  );
}

function shownOf({ shown, hasMore, dangling }) {
  const many = hasMore ? `${shown} so far` : shown || 'none';
  return dangling ? `${many}, ${dangling} lead nowhere` : many;
}

function EdgeDetails({ edge, graph, typeNames, onSelect }) {
  const end = (id) => {
    const { type, label } = graph.nodes.get(id);
    return (
      <button type="button" className="link" onClick={() => onSelect(id)}>
        <Swatch typeNames={typeNames} type={type} /> {type} {label}
      </button>
    );
  };
  const items = edge.items.filter(({ values }, index) => index === 0 || Object.keys(values).length);
  return (
    <section aria-label="Edge">
      <h2>{edge.names.join(' / ')}</h2>
      <p>
        {end(edge.source)} → {end(edge.target)}
      </p>
      {items.map(({ values, of }, index) => (
        <div key={index}>
          {of && <h3>{of}</h3>}
          <Values values={values} />
        </div>
      ))}
    </section>
  );
}

function Values({ values }) {
  const entries = Object.entries(values);
  if (!entries.length) return <p className="faint">No fields of its own.</p>;
  return (
    <table className="values">
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td className={value === null ? 'faint' : ''}>
              {typeof value === 'string' ? value : JSON.stringify(value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Start({ source, isOpen, typeNames, onAdd, onProblem }) {
  const { starts } = source.api;
  const [chosen, setChosen] = useState(
    () => KINDS.flatMap(([kind]) => starts.filter((each) => each.kind === kind))[0]?.name ?? 'id',
  );
  const [found, setFound] = useState(null);
  const [open, setOpen] = useState(isOpen);
  useEffect(() => setOpen(isOpen), [isOpen]);
  const start = starts.find(({ name }) => name === chosen);

  const find = async (values, after = null) => {
    try {
      const { nodes, more, errors } = await source.start(start, values, after);
      if (errors.length) onProblem(errors[0]);
      const all = [...(after ? found.nodes : []), ...nodes];
      if (start.kind === 'lookup' && nodes.length) onAdd([nodes[0].id]);
      else setFound({ nodes: all, more, values });
    } catch (error) {
      onProblem(error);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    const entered = Object.fromEntries(new FormData(event.target));
    if (chosen === 'id') return onAdd([entered.id.trim()]);
    const values = {};
    for (const arg of start.args) {
      const text = (entered[arg.name] ?? '').trim();
      if (!text) continue;
      try {
        values[arg.name] = arg.isJson || arg.isNumber || arg.isBoolean ? JSON.parse(text) : text;
      } catch {
        onProblem({ message: `${arg.name}: expected ${arg.type} as JSON, got ${text}` });
        return;
      }
    }
    find(values);
  };

  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Begin with</summary>
      <form onSubmit={submit} className="start">
        <select
          aria-label="What to begin with"
          value={chosen}
          onChange={(event) => (setChosen(event.target.value), setFound(null))}
        >
          {KINDS.map(([kind, title]) => {
            const some = starts.filter((each) => each.kind === kind);
            return (
              some.length > 0 && (
                <optgroup key={kind} label={title}>
                  {some.map(({ name }) => (
                    <option key={name}>{name}</option>
                  ))}
                </optgroup>
              )
            );
          })}
          <option value="id">A global id</option>
        </select>
        {chosen === 'id' && (
          <input key="id" name="id" aria-label="Global id" placeholder="id" required autoComplete="off" />
        )}
        {start?.args.map((arg) => (
          <Argument key={`${chosen} ${arg.name}`} arg={arg} />
        ))}
        <button type="submit" className="primary">
          {start && start.kind !== 'lookup' ? 'Find' : 'Show'}
        </button>
      </form>
      {found && !found.nodes.length && <p role="status">Nothing was found.</p>}
      {found?.nodes.length > 0 && (
        <>
          <ul className="found">
            {found.nodes.map((node) => (
              <li key={node.id}>
                <button type="button" className="link" onClick={() => onAdd([node.id])}>
                  <Swatch typeNames={typeNames} type={node.type} /> {node.type} {labelOf(node)}
                </button>
              </li>
            ))}
          </ul>
          <div className="row">
            <button type="button" onClick={() => onAdd(found.nodes.map(({ id }) => id))}>
              Show all {found.nodes.length}
            </button>
            {found.more && (
              <button type="button" onClick={() => find(found.values, found.more)}>
                More
              </button>
            )}
          </div>
        </>
      )}
    </details>
  );
}

function Argument({ arg }) {
  const label = `${arg.name}: ${arg.type}`;
  if (arg.values) {
    return (
      <select name={arg.name} aria-label={label} required={arg.isRequired} defaultValue="">
        <option value="">{label}</option>
        {arg.values.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    );
  }
  return (
    <input
      name={arg.name}
      aria-label={label}
      title={arg.description ?? undefined}
      placeholder={arg.isJson ? `${label}, as JSON` : label}
      required={arg.isRequired}
      autoComplete="off"
    />
  );
}

function NodeList({ graph, view, typeNames, onSelect }) {
  const [text, setText] = useState('');
  const nodes = [...graph.nodes.values()].filter(({ type, label }) =>
    `${type} ${label}`.toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <details>
      <summary>All {graph.nodes.size} nodes</summary>
      <input
        aria-label="Filter the nodes"
        placeholder="Filter"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <ul>
        {nodes.slice(0, LISTED).map(({ id, type, label }) => (
          <li key={id}>
            <button type="button" className="link" aria-current={id === view.selected} onClick={() => onSelect(id)}>
              <Swatch typeNames={typeNames} type={type} /> {type} {label}
            </button>
          </li>
        ))}
      </ul>
      {nodes.length > LISTED && <p className="faint">… and {nodes.length - LISTED} more</p>}
    </details>
  );
}
