/* What each field of the API asks of DynamoDB: the model's access patterns, as `tablegraph check` prints them. */
import { useEffect, useState } from 'react';
import { useGraphiQL } from '@graphiql/react';
import { readOutline } from '../api';

function Patterns() {
  const headers = useGraphiQL((state) => state.headerEditor?.getValue());
  const [outline, setOutline] = useState(null);
  const [problem, setProblem] = useState('');
  const [text, setText] = useState('');
  useEffect(() => {
    let isOver = false;
    readOutline(read(headers)).then(
      (found) => isOver || (setOutline(found), setProblem('')),
      (error) => isOver || setProblem(error.message),
    );
    return () => (isOver = true);
  }, [headers]);
  const patterns = outline?.patterns.filter((pattern) =>
    JSON.stringify(pattern).toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <section className="beside-graphiql" aria-label="Access patterns">
      <h2>Access patterns</h2>
      {problem && <p role="alert">{problem}</p>}
      {patterns && (
        <>
          <input
            aria-label="Filter the access patterns"
            placeholder="Filter"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <table className="patterns">
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Requests</th>
                <th scope="col">Index</th>
              </tr>
            </thead>
            {patterns.map((pattern) => (
              <tbody key={pattern.field}>
                <tr>
                  <th scope="row">{pattern.field}</th>
                  <td>{pattern.requests}</td>
                  <td>{pattern.index}</td>
                </tr>
                <tr>
                  <td colSpan={3}>
                    <code>{pattern.key_condition}</code>
                    {pattern.then && <div className="note">then {pattern.then}</div>}
                  </td>
                </tr>
              </tbody>
            ))}
          </table>
          <p className="note">
            The same as a picture: <a href="/schema">Schema</a>.
          </p>
        </>
      )}
    </section>
  );
}

function read(headers) {
  try {
    return JSON.parse(headers || '{}');
  } catch {
    return {};
  }
}

function Icon(props) {
  return (
    <svg height="1em" viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.5" {...props}>
      <path d="M3 4.5h18v15H3zM3 10h18M9 4.5v15" />
    </svg>
  );
}

export const patternsPlugin = { title: 'Access Patterns', icon: Icon, content: Patterns };
