import { Component, Suspense, useEffect, useRef, useState, type ReactNode } from 'react';

/** One column: it waits for its data, and shows what went wrong, by itself. */
export function Panel({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="panel" aria-label={title}>
      <ErrorBoundary>
        <Suspense fallback={<p className="waiting" role="status" aria-label={`Loading ${title}`} />}>{children}</Suspense>
      </ErrorBoundary>
    </section>
  );
}

/** Shows the errors of the queries below it; trying again renders them anew, and so asks anew. */
class ErrorBoundary extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div role="alert">
        <p className="error">{this.state.error.message}</p>
        <button onClick={() => this.setState({ error: undefined })}>Try again</button>
      </div>
    );
  }
}

/** A value that is edited in its place: Enter saves it, Escape leaves it as it was. */
export function Editable({ label, value, onSave }: { label: string; value: string; onSave: (value: string) => void }) {
  const [draft, setDraft] = useState<string>();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (draft !== undefined && draft !== value) onSave(draft);
        setDraft(undefined);
      }}
    >
      <input
        aria-label={label}
        value={draft ?? value}
        placeholder="not known"
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && setDraft(undefined)}
      />
      {draft !== undefined && draft !== value && <button className="primary">Save</button>}
    </form>
  );
}

/** Asks for more whenever the end of the list comes into sight. */
export function More({ onMore, isLoading }: { onMore: () => void; isLoading: boolean }) {
  const end = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isLoading) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && onMore());
    observer.observe(end.current!);
    return () => observer.disconnect();
  }, [isLoading, onMore]);
  return (
    <button ref={end} className="more" onClick={onMore} disabled={isLoading}>
      {isLoading ? 'Loading …' : 'More'}
    </button>
  );
}

export const Moment = ({ of }: { of: string }) => (
  <time dateTime={of}>
    {new Date(of).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })}
  </time>
);
