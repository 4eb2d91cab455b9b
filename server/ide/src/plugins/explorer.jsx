/*
 * Builds queries by clicking: the schema as a tree of checkboxes, of which those are set that the query asks for.
 *
 * Ours, for the one that GraphiQL's authors have is made of elements that no keyboard reaches, and drops comments.
 */
import { useState } from 'react';
import { pick, useGraphiQL, useOperationsEditorState, useOptimisticState } from '@graphiql/react';
import { getNamedType, isAbstractType, isCompositeType, isEnumType, getNullableType } from 'graphql';
import {
  argumentOf,
  fieldIn,
  fragmentIn,
  fragmentOf,
  newOperation,
  operationOf,
  readDocument,
  selectionOf,
  shownValue,
  valueOf,
  withArgument,
  withSelection,
  written,
} from './document';

function Explorer() {
  const { schema, operationName } = useGraphiQL(pick('schema', 'operationName'));
  const [text, setText] = useOptimisticState(useOperationsEditorState());
  const [filter, setFilter] = useState('');
  const document = readDocument(text);
  const roots = schema
    ? [
        ['query', schema.getQueryType()],
        ['mutation', schema.getMutationType()],
        ['subscription', schema.getSubscriptionType()],
      ].filter(([, type]) => type)
    : [];
  return (
    <section className="beside-graphiql explorer" aria-label="Explorer">
      <h2>Explorer</h2>
      {!document && <p role="alert">The query is not GraphQL as it stands: mend it, and choose on.</p>}
      <input
        aria-label="Filter the fields"
        placeholder="Filter"
        value={filter}
        onChange={(event) => setFilter(event.target.value)}
      />
      {document &&
        roots.map(([kind, type]) => {
          const operation = operationOf(document, kind, operationName);
          return (
            <details key={kind} open={kind === 'query' || Boolean(operation) || undefined}>
              <summary>{kind}</summary>
              <Fields
                schema={schema}
                type={type}
                parent={operation ?? newOperation(kind)}
                filter={filter}
                onChange={(changed) => setText(written(text, operation, changed))}
              />
            </details>
          );
        })}
    </section>
  );
}

/** The fields of a type; `parent` is what selects them in the document. */
function Fields({ schema, type, parent, filter = '', onChange }) {
  const fields = type.getFields ? Object.values(type.getFields()) : [];
  const fits = ({ name }) => fieldIn(parent, name) || name.toLowerCase().includes(filter.toLowerCase());
  return (
    <ul>
      {fields.filter(fits).map((field) => (
        <Field key={field.name} schema={schema} field={field} parent={parent} onChange={onChange} />
      ))}
      {isAbstractType(type) &&
        schema
          .getPossibleTypes(type)
          .map((possible) => (
            <Fragment key={possible.name} schema={schema} type={possible} parent={parent} onChange={onChange} />
          ))}
    </ul>
  );
}

function Field({ schema, field, parent, onChange }) {
  const selected = fieldIn(parent, field.name);
  const type = getNamedType(field.type);
  const replace = (changed) => onChange(withSelection(parent, selected, changed));
  return (
    <li>
      <label title={field.description ?? undefined}>
        <input
          type="checkbox"
          checked={Boolean(selected)}
          onChange={() => replace(selected ? null : selectionOf(field))}
        />
        <span className={field.deprecationReason ? 'deprecated' : ''}>{field.name}</span>{' '}
        <small>{String(field.type)}</small>
      </label>
      {selected && (
        <div className="inside">
          {field.args.map((arg) => (
            <Argument key={arg.name} arg={arg} selected={selected} onChange={replace} />
          ))}
          {isCompositeType(type) && <Fields schema={schema} type={type} parent={selected} onChange={replace} />}
        </div>
      )}
    </li>
  );
}

function Fragment({ schema, type, parent, onChange }) {
  const selected = fragmentIn(parent, type.name);
  const replace = (changed) => onChange(withSelection(parent, selected, changed));
  return (
    <li>
      <label>
        <input
          type="checkbox"
          checked={Boolean(selected)}
          onChange={() => replace(selected ? null : fragmentOf(type))}
        />
        … on {type.name}
      </label>
      {selected && (
        <div className="inside">
          <Fields schema={schema} type={type} parent={selected} onChange={replace} />
        </div>
      )}
    </li>
  );
}

function Argument({ arg, selected, onChange }) {
  const given = selected.arguments?.find((each) => each.name.value === arg.name);
  const [wrong, setWrong] = useState(null);
  const bare = getNullableType(arg.type);
  const set = (text) => {
    const value = valueOf(text, arg.type);
    setWrong(value ? null : text);
    if (value) onChange(withArgument(selected, arg.name, argumentOf(arg, value)));
  };
  return (
    <div className="argument">
      <label title={arg.description ?? undefined}>
        <input
          type="checkbox"
          checked={Boolean(given)}
          onChange={() => onChange(withArgument(selected, arg.name, given ? null : argumentOf(arg)))}
        />
        {arg.name}
      </label>
      {given && isEnumType(bare) && (
        <select
          aria-label={`${arg.name}: ${arg.type}`}
          value={shownValue(given.value, arg.type)}
          onChange={(event) => set(event.target.value)}
        >
          {bare.getValues().map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      {given && !isEnumType(bare) && (
        <input
          aria-label={`${arg.name}: ${arg.type}`}
          aria-invalid={wrong !== null}
          value={wrong ?? shownValue(given.value, arg.type)}
          onChange={(event) => set(event.target.value)}
        />
      )}
      {!given && <small>{String(arg.type)}</small>}
    </div>
  );
}

function Icon(props) {
  return (
    <svg height="1em" viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.6" {...props}>
      <path d="M4 4h6v6H4zM14 6h7M7 10v8h5M14 18h7" />
    </svg>
  );
}

export const explorerPlugin = { title: 'Explorer', icon: Icon, content: Explorer };
