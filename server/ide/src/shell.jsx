/* What the pages beside GraphiQL share: their head with its links, the place for headers, errors, downloads. */
import './shell.css';

import { useEffect, useRef, useState } from 'react';
import { config } from './config';
import { Links } from './links';

const STORED = `tablegraph:${config.title}:headers`;
export function Head({ children }) {
  return (
    <header className="head">
      <h1>{config.title || 'tablegraph'}</h1>
      <Links />
      <div className="tools">{children}</div>
    </header>
  );
}

/** Headers that go with every request, in this tab of the browser alone: they may be secrets. */
export function useHeaders() {
  const [text, setText] = useState(() => sessionStorage.getItem(STORED) ?? '');
  const keep = (entered) => {
    sessionStorage.setItem(STORED, entered);
    setText(entered);
  };
  return [text ? JSON.parse(text) : {}, text, keep];
}

export function HeadersButton({ text, onChange, isWanted }) {
  const dialog = useRef();
  const [problem, setProblem] = useState('');
  const save = (event) => {
    const entered = new FormData(event.target).get('headers').trim();
    const wrong = wrongWith(entered);
    setProblem(wrong);
    if (wrong) event.preventDefault();
    else onChange(entered);
  };
  return (
    <>
      <button type="button" className={isWanted ? 'urgent' : ''} onClick={() => dialog.current.showModal()}>
        Headers{text && ' ●'}
      </button>
      <dialog ref={dialog} aria-labelledby="headers-title">
        <form method="dialog" onSubmit={save}>
          <h2 id="headers-title">Headers</h2>
          <p>They go with every request of this page, and are forgotten with this tab.</p>
          <textarea
            name="headers"
            aria-label="Headers, as JSON"
            defaultValue={text}
            rows="5"
            spellCheck="false"
            placeholder='{ "Authorization": "Bearer …" }'
          />
          {problem && <p role="alert">{problem}</p>}
          <div className="row end">
            <button type="button" onClick={() => dialog.current.close()}>
              Cancel
            </button>
            <button type="submit" className="primary">
              Use them
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}

function wrongWith(text) {
  if (!text) return '';
  try {
    new Headers(JSON.parse(text));
    return '';
  } catch {
    return 'Expected a JSON object of texts, like { "Authorization": "Bearer …" }, got something else.';
  }
}

export function Problems({ errors, onRetry, onClose }) {
  if (!errors.length) return null;
  const isCallers = errors.some((error) => error.isCallers || ['FORBIDDEN', 'UNAUTHENTICATED'].includes(codeOf(error)));
  return (
    <div className="problems" role="alert">
      <ul>
        {errors.slice(0, 4).map((error, index) => (
          <li key={index}>
            {codeOf(error) && <code>{codeOf(error)}</code>} {error.message}
            {error.path && <small> at {error.path.join('.')}</small>}
          </li>
        ))}
        {errors.length > 4 && <li>… and {errors.length - 4} more</li>}
      </ul>
      {isCallers && <p>What you may see depends on who asks: say so by “Headers”, above.</p>}
      <div className="row">
        <button type="button" onClick={onRetry}>
          Try again
        </button>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </div>
  );
}

function codeOf(error) {
  return error.code ?? error.extensions?.code;
}

export function CopyLink() {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    await navigator.clipboard.writeText(location.href);
    setCopied(true);
  };
  return (
    <button type="button" onClick={copy} title="Everything that is seen here is in the page's address">
      {isCopied ? 'Copied' : 'Copy link'}
    </button>
  );
}

export function download(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Call back at once and whenever the system turns light or dark. */
export function useScheme(react) {
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const tell = () => react(dark.matches);
    tell();
    dark.addEventListener('change', tell);
    return () => dark.removeEventListener('change', tell);
  }, [react]);
}

const HUES = [
  '#3b76e0',
  '#d9622b',
  '#2f9e5b',
  '#a24fc9',
  '#c79100',
  '#12919f',
  '#cf3b72',
  '#6a5ad6',
  '#7c9a1f',
  '#8a7466',
];

/** Give the colour of the nth thing of a kind; the same in light and dark. */
export function hueOf(index) {
  return HUES[index % HUES.length];
}
