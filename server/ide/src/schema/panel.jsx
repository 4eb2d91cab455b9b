/* At the side: the tables and all types or, of what is chosen, its keys, indexes and access patterns. */
export function Panel({ outline, picture, chosen, indexes, hueOfIndex, onSelect }) {
  if (!outline) return <aside className="panel" aria-label="Details" />;
  const type = outline.types.find(({ name }) => name === chosen);
  const line = picture?.lines.find(({ key }) => key === chosen);
  return (
    <aside className="panel" aria-label="Details">
      {type && <TypeDetails type={type} outline={outline} onSelect={onSelect} />}
      {line && <LineDetails line={line} outline={outline} onSelect={onSelect} />}
      {!type && !line && <Overview outline={outline} onSelect={onSelect} />}
      <Legend indexes={indexes} hueOfIndex={hueOfIndex} />
    </aside>
  );
}

function Legend({ indexes, hueOfIndex }) {
  return (
    <section aria-label="Legend">
      <h3>Legend</h3>
      <ul>
        {indexes.map((index) => (
          <li key={index} className="row">
            <span className="swatch pill" style={{ background: hueOfIndex(index) }} /> {meaningOf(index)}
          </li>
        ))}
        <li className="row">
          <svg width="26" height="14" className="line" aria-hidden="true">
            <path d="M0 7H26M15 7L26 1M15 7L26 13" />
          </svg>
          to many
        </li>
        <li className="row">
          <svg width="26" height="14" className="line" aria-hidden="true">
            <path d="M0 7H26M18 2L26 7L18 12" />
          </svg>
          to one
        </li>
      </ul>
    </section>
  );
}

function meaningOf(index) {
  if (index === 'table') return 'table: its primary key';
  if (index === 'key') return 'key: the item names it';
  return index;
}

function Overview({ outline, onSelect }) {
  const [nodes, edges] = [true, false].map((isNode) => outline.types.filter((type) => type.isNode === isNode));
  return (
    <>
      {outline.tables.map((table) => (
        <section key={table.name}>
          <h2>{table.name}</h2>
          <table className="values">
            <tbody>
              {table.indexes.map((index) => (
                <tr key={index.name}>
                  <th scope="row">{index.name === 'table' ? 'primary key' : index.name}</th>
                  <td>
                    <code>{[...index.partition, ...index.sort].join(', ')}</code>
                    {noteOf(index) && <small> {noteOf(index)}</small>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ))}
      <Types title="Nodes" types={nodes} onSelect={onSelect} />
      <Types title="Edges" types={edges} onSelect={onSelect} />
    </>
  );
}

function noteOf({ projection, local }) {
  const held = Array.isArray(projection)
    ? `holds ${projection.join(', ')}`
    : projection === 'ALL'
      ? ''
      : 'holds keys alone';
  return [local && 'local', held].filter(Boolean).join(', ');
}

function Types({ title, types, onSelect }) {
  if (!types.length) return null;
  return (
    <section>
      <h3>
        {title} ({types.length})
      </h3>
      <ul>
        {types.map(({ name }) => (
          <li key={name}>
            <button type="button" className="link" onClick={() => onSelect(name)}>
              {name}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function TypeDetails({ type, outline, onSelect }) {
  const isLead = ({ field, types }) => types[0] === type.name || field.startsWith(`${type.name}.`);
  const patterns = outline.patterns.filter(({ types }) => types.includes(type.name));
  return (
    <section aria-label="Type">
      <h2>{type.name}</h2>
      {type.description && <p>{type.description}</p>}
      <p className="faint">
        {type.isVirtual ? 'A virtual node: it is there by being named' : type.isNode ? 'A node' : 'An edge'}
        {type.table && ` in ${type.table}`}
      </p>
      <Keys type={type} />
      <Fields type={type} />
      <Patterns title="Access patterns" patterns={patterns.filter(isLead)} />
      <Patterns title="Leading here" patterns={patterns.filter((pattern) => !isLead(pattern))} />
      <p>
        <button type="button" className="link" onClick={() => onSelect(null)}>
          All types
        </button>
      </p>
    </section>
  );
}

function LineDetails({ line, outline, onSelect }) {
  const through = outline.types.filter(({ name }) => line.through.includes(name));
  const fields = [line.there, line.back].filter(Boolean).map(({ from, field }) => `${from}.${field}`);
  const patterns = outline.patterns.filter(({ field }) => fields.includes(field.split('(')[0]));
  return (
    <section aria-label="Relationship">
      <h2>{fields.join(' / ')}</h2>
      <p>
        <TypeLink name={line.from} onSelect={onSelect} /> → <TypeLink name={line.to} onSelect={onSelect} />
      </p>
      {line.there.path.length > 0 && <p>By way of {line.there.path.join(' → ')}.</p>}
      {[line.there, line.back]
        .filter((link) => link?.index === 'key')
        .map(({ from, field, to }) => (
          <p key={field}>
            <code>{`${from}.${field}`}</code>: a {from} names its {to}, which is read by its key.
          </p>
        ))}
      <Patterns title="Access patterns" patterns={patterns} />
      {through.map((type) => (
        <section key={type.name}>
          <h3>Through</h3>
          <p>
            <TypeLink name={type.name} onSelect={onSelect} />
          </p>
          <Keys type={type} />
          <Fields type={type} />
        </section>
      ))}
    </section>
  );
}

function TypeLink({ name, onSelect }) {
  return (
    <button type="button" className="link" onClick={() => onSelect(name)}>
      {name}
    </button>
  );
}

function Keys({ type }) {
  return type.layouts.map(({ name, keys }) => (
    <section key={name}>
      <h3>{type.layouts.length > 1 ? `Keys of ${name}` : 'Keys'}</h3>
      <table className="values">
        <tbody>
          {Object.entries(keys).flatMap(([index, attributes]) =>
            Object.entries(attributes).map(([attribute, template], row) => (
              <tr key={`${index} ${attribute}`}>
                <th scope="row">{row === 0 ? index : ''}</th>
                <td>
                  <code>
                    {attribute} = {template}
                  </code>
                </td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </section>
  ));
}

function Fields({ type }) {
  return (
    <section>
      <h3>Fields</h3>
      <table className="values">
        <tbody>
          {type.fields.map(({ name, type: of, isKey, description }) => (
            <tr key={name} title={description ?? undefined}>
              <th scope="row">{isKey ? <strong>{name}</strong> : name}</th>
              <td>
                <code>{of}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Patterns({ title, patterns }) {
  if (!patterns.length) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul className="patterns">
        {patterns.map((pattern) => (
          <li key={pattern.field}>
            <strong>{pattern.field}</strong>
            <div>
              {pattern.requests}
              {pattern.index !== 'table' && ` of ${pattern.index}`}
            </div>
            <code>{pattern.key_condition}</code>
            {pattern.then && <small>then {pattern.then}</small>}
          </li>
        ))}
      </ul>
    </section>
  );
}
