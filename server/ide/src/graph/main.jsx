/*
 * /graph: nodes and edges of the table, drawn as they are explored through the public API.
 *
 * All that is seen follows from the link: each step changes it, so that the browser's Back goes a step back.
 */
import './graph.css';

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ask } from '../api';
import { config } from '../config';
import { CopyLink, download, Head, HeadersButton, Problems, useHeaders, useScheme } from '../shell';
import { Canvas } from './canvas';
import { Legend } from './legend';
import { Panel } from './panel';
import { INTROSPECTION, readApi } from './types';
import { load, PAGE, readView, Source, writeView } from './view';

const NOTHING = { nodes: new Map(), edges: new Map(), errors: [] };
const KEYS = [
  'The graph. Arrows choose a node, Enter expands it, Delete takes it away;',
  'plus and minus zoom, 0 shows all, Shift with arrows moves.',
].join(' ');
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function useView() {
  const [view, setView] = useState(() => readView(location.hash));
  useEffect(() => {
    const follow = () => setView(readView(location.hash));
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  const go = useCallback((change, isStep = true) => {
    const next = { ...readView(location.hash), ...change };
    history[isStep ? 'pushState' : 'replaceState'](null, '', writeView(next));
    setView(next);
  }, []);
  return [view, go];
}

function Page() {
  const [headers, headersText, keepHeaders] = useHeaders();
  const [view, go] = useView();
  const [source, setSource] = useState(null);
  const [graph, setGraph] = useState(NOTHING);
  const [problems, setProblems] = useState([]);
  const [isBusy, setBusy] = useState(false);
  const [turn, setTurn] = useState(0);
  const canvas = useRef(null);
  const stage = useRef();
  const again = () => setTurn(turn + 1);

  useEffect(() => {
    let isOver = false;
    ask(INTROSPECTION, {}, headers).then(
      ({ data }) => isOver || (setSource(new Source(readApi(data), headers)), setProblems([])),
      (error) => isOver || setProblems([error]),
    );
    return () => (isOver = true);
  }, [headersText, turn]);

  const { roots, expansions } = view;
  const wanted = JSON.stringify([roots, expansions]);
  useEffect(() => {
    if (!source) return;
    let isOver = false;
    setBusy(true);
    load(view, source)
      .then(
        (loaded) => isOver || (setGraph(loaded), setProblems(loaded.errors)),
        (error) => isOver || setProblems([error]),
      )
      .finally(() => isOver || setBusy(false));
    return () => (isOver = true);
  }, [source, wanted]);

  const typeNames = useMemo(() => [...(source?.api.types.keys() ?? [])].sort(), [source]);
  const relationshipsOf = (id) => source.api.types.get(graph.nodes.get(id)?.type)?.relationships ?? [];

  const select = (id) => go({ selected: id }, false);
  const add = (ids) => {
    const { roots } = readView(location.hash);
    go({ roots: [...new Set([...roots, ...ids])], selected: ids[0] });
  };
  const expand = (id, names = relationshipsOf(id).map(({ name }) => name)) => {
    const { expansions } = readView(location.hash);
    const known = new Map(expansions.map((each) => [`${each.id} ${each.field}`, each]));
    for (const field of names) {
      const old = known.get(`${id} ${field}`);
      const hasMore = graph.nodes.get(id)?.expanded[field]?.hasMore;
      if (!old || hasMore) known.set(`${id} ${field}`, { id, field, pages: (old?.pages ?? 0) + 1 });
    }
    go({ expansions: [...known.values()], selected: id });
  };
  const collapse = (id) => {
    const { roots, expansions, selected } = readView(location.hash);
    const isRoot = roots.includes(id) && roots.length > 1;
    go({
      roots: isRoot ? roots.filter((root) => root !== id) : roots,
      expansions: expansions.filter((each) => each.id !== id),
      selected: isRoot ? null : selected,
    });
  };
  const toggle = (name) => {
    const { hidden } = readView(location.hash);
    go({ hidden: hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name] });
  };

  const act = useRef();
  act.current = { select, expand };
  useEffect(() => {
    canvas.current = new Canvas(stage.current, {
      onSelect: (id) => act.current.select(id),
      onExpand: (id) => act.current.expand(id),
      // Tests wait for it: until then nodes move.
      onReady: () => (stage.current.dataset.arranged = canvas.current.cy.nodes().length),
    });
    // For the console, and for tests: a canvas has no elements to ask for.
    globalThis.cy = canvas.current.cy;
    return () => canvas.current.destroy();
  }, []);
  useEffect(() => {
    canvas.current.show(graph, typeNames, view.hidden);
    canvas.current.select(view.selected);
  }, [graph, typeNames, view.hidden.join()]);
  useEffect(() => canvas.current.select(view.selected), [view.selected]);
  useScheme(useCallback(() => canvas.current?.recolour(), []));

  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key, shiftKey } = event;
    const { current } = canvas;
    if (ARROWS[key] && shiftKey) current.pan(...ARROWS[key].map((way) => -60 * way));
    else if (ARROWS[key]) select(current.towards(view.selected, ARROWS[key]) ?? null);
    else if (key === 'Enter' && graph.nodes.has(view.selected)) expand(view.selected);
    else if (key === 'Delete' && graph.nodes.has(view.selected)) collapse(view.selected);
    else if (key === 'Escape') select(null);
    else if (key === '+' || key === '=') current.zoom(1.25);
    else if (key === '-') current.zoom(0.8);
    else if (key === '0') current.fit();
    else return;
    event.preventDefault();
  };

  const savePng = async () => download(await canvas.current.png(), `${config.title || 'graph'}.png`);
  const chosen = graph.nodes.get(view.selected);
  const counts = `${graph.nodes.size} nodes, ${graph.edges.size} edges`;

  return (
    <>
      <Head>
        <span className="faint counts" role="status">
          {isBusy ? 'Reading …' : counts}
        </span>
        <button type="button" onClick={() => go({ roots: [], expansions: [], selected: null, hidden: [] })}>
          Begin anew
        </button>
        <CopyLink />
        <button type="button" onClick={savePng} disabled={!graph.nodes.size}>
          Save PNG
        </button>
        <HeadersButton
          text={headersText}
          onChange={keepHeaders}
          isWanted={problems.some(({ isCallers }) => isCallers)}
        />
      </Head>
      <main className="split">
        <div className="stage">
          <Problems errors={problems} onRetry={again} onClose={() => setProblems([])} />
          <div ref={stage} className="canvas" role="application" tabIndex={0} aria-label={KEYS} onKeyDown={onKey} />
          <p className="silent" aria-live="polite">
            {chosen && `${chosen.type} ${chosen.label}`}
          </p>
          {!graph.nodes.size && !isBusy && (
            <p className="hint">
              Begin with a node, at the side. Double-click one, or press Enter, to see what it is linked to.
            </p>
          )}
          <Legend graph={graph} typeNames={typeNames} hidden={view.hidden} onToggle={toggle} />
          <div className="zoom" role="group" aria-label="View">
            <button type="button" onClick={() => canvas.current.zoom(1.25)} aria-label="Zoom in">
              +
            </button>
            <button type="button" onClick={() => canvas.current.zoom(0.8)} aria-label="Zoom out">
              −
            </button>
            <button type="button" onClick={() => canvas.current.fit()}>
              Fit
            </button>
            <button type="button" onClick={() => canvas.current.arrange(true)}>
              Arrange
            </button>
          </div>
        </div>
        <Panel
          source={source}
          graph={graph}
          view={view}
          page={PAGE}
          typeNames={typeNames}
          onSelect={select}
          onAdd={add}
          onExpand={expand}
          onCollapse={collapse}
          onProblem={(error) => setProblems([error])}
        />
      </main>
    </>
  );
}

document.title = ['Graph', config.title].filter(Boolean).join(' · ');
createRoot(document.getElementById('page')).render(<Page />);
