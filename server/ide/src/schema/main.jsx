/* /schema: the model as a picture, and which key or index serves what. The link has what is chosen and in sight. */
import './schema.css';

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { readOutline } from '../api';
import { config } from '../config';
import { CopyLink, download, Head, HeadersButton, hueOf, Problems, useHeaders } from '../shell';
import { cardsOf, layOut, linesOf } from './layout';
import { Panel } from './panel';
import { Picture, pngOf, svgOf, zoomed } from './picture';

const SPACE = 30;
const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/* #t=<type or line>&f=1 (all fields)&v=<x>,<y>,<zoom> */
function readHash() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const [x, y, zoom] = (parameters.get('v') ?? '').split(',').map(Number);
  return {
    chosen: parameters.get('t'),
    hasAttributes: parameters.get('f') !== '0',
    sight: zoom > 0 ? { x, y, zoom } : null,
  };
}

function writeHash({ chosen, hasAttributes, sight }) {
  const parameters = new URLSearchParams();
  if (chosen) parameters.set('t', chosen);
  if (!hasAttributes) parameters.set('f', '0');
  if (sight) parameters.set('v', [Math.round(sight.x), Math.round(sight.y), sight.zoom.toFixed(3)]);
  return `#${parameters}`;
}

function Page() {
  const [headers, headersText, keepHeaders] = useHeaders();
  const [{ chosen, hasAttributes, sight }, setHash] = useState(readHash);
  const [outline, setOutline] = useState(null);
  const [picture, setPicture] = useState(null);
  const [problems, setProblems] = useState([]);
  const [turn, setTurn] = useState(0);
  const stage = useRef();

  useEffect(() => {
    const follow = () => setHash(readHash());
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  const go = useCallback((change, isStep = false) => {
    const next = { ...readHash(), ...change };
    history[isStep ? 'pushState' : 'replaceState'](null, '', writeHash(next));
    // As the link has it, that who follows it sees the same.
    setHash(readHash());
  }, []);

  useEffect(() => {
    let isOver = false;
    readOutline(headers).then(
      (read) => isOver || (setOutline(read), setProblems([])),
      (error) => isOver || setProblems([error]),
    );
    return () => (isOver = true);
  }, [headersText, turn]);

  useEffect(() => {
    if (!outline) return;
    let isOver = false;
    const cards = cardsOf(outline, hasAttributes);
    const { clientWidth: width, clientHeight: height } = stage.current;
    layOut(cards, linesOf(outline, cards), { width, height }).then((placed) => isOver || setPicture(placed));
    return () => (isOver = true);
  }, [outline, hasAttributes]);

  const fitting = useMemo(() => {
    if (!picture || !stage.current) return null;
    const { clientWidth, clientHeight } = stage.current;
    const zoom = Math.min(1.2, (clientWidth - 2 * SPACE) / picture.width, (clientHeight - 2 * SPACE) / picture.height);
    const [x, y] = [(clientWidth - picture.width * zoom) / 2, (clientHeight - picture.height * zoom) / 2];
    return { x, y, zoom };
  }, [picture]);
  const seen = sight ?? fitting;

  // Moving a picture makes many places, and browsers allow so many changes of the address in a while.
  const [moving, setMoving] = useState(null);
  useEffect(() => {
    if (!moving) return;
    const timer = setTimeout(() => (go({ sight: moving }), setMoving(null)), 150);
    return () => clearTimeout(timer);
  }, [moving]);
  const shown = moving ?? seen;

  const select = useCallback((key) => go({ chosen: key }, true), []);
  const zoom = (factor) => {
    const { clientWidth, clientHeight } = stage.current;
    setMoving(zoomed(shown, factor, clientWidth / 2, clientHeight / 2));
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ARROWS[event.key];
    if (way) setMoving({ ...shown, x: shown.x + 60 * way[0], y: shown.y + 60 * way[1] });
    else if (event.key === '+' || event.key === '=') zoom(1.25);
    else if (event.key === '-') zoom(0.8);
    else if (event.key === '0') go({ sight: null });
    else if (event.key === 'Escape') select(null);
    else return;
    event.preventDefault();
  };

  const indexes = useMemo(() => {
    const served = new Set(outline?.links.map(({ index }) => index));
    const names = outline?.tables.flatMap((table) => table.indexes.map(({ name }) => name)) ?? [];
    return [...new Set([...names, ...served])].filter((name) => served.has(name));
  }, [outline]);
  const hueOfIndex = (name) => hueOf(indexes.indexOf(name));

  const name = `${config.title || 'schema'}-schema`;
  const svgText = () => svgOf(stage.current.querySelector('.picture'), picture);
  const saveSvg = () => download(new Blob([svgText()], { type: 'image/svg+xml' }), `${name}.svg`);
  const savePng = async () => download(await pngOf(svgText(), picture), `${name}.png`);

  return (
    <>
      <Head>
        <label className="row">
          <input
            type="checkbox"
            checked={hasAttributes}
            onChange={(event) => go({ hasAttributes: event.target.checked, sight: null })}
          />
          All fields
        </label>
        <CopyLink />
        <button type="button" onClick={saveSvg} disabled={!picture}>
          Save SVG
        </button>
        <button type="button" onClick={savePng} disabled={!picture}>
          Save PNG
        </button>
        <HeadersButton
          text={headersText}
          onChange={keepHeaders}
          isWanted={problems.some(({ isCallers }) => isCallers)}
        />
      </Head>
      <main className="split">
        <div className="stage" ref={stage} onKeyDown={onKey}>
          <Problems errors={problems} onRetry={() => setTurn(turn + 1)} onClose={() => setProblems([])} />
          {picture && (
            <Picture
              picture={picture}
              view={shown}
              hueOfIndex={hueOfIndex}
              chosen={chosen}
              onSelect={select}
              onMove={setMoving}
            />
          )}
          <div className="zoom" role="group" aria-label="View">
            <button type="button" onClick={() => zoom(1.25)} aria-label="Zoom in">
              +
            </button>
            <button type="button" onClick={() => zoom(0.8)} aria-label="Zoom out">
              −
            </button>
            <button type="button" onClick={() => go({ sight: null })}>
              Fit
            </button>
          </div>
        </div>
        <Panel
          outline={outline}
          picture={picture}
          chosen={chosen}
          indexes={indexes}
          hueOfIndex={hueOfIndex}
          onSelect={select}
        />
      </main>
    </>
  );
}

document.title = ['Schema', config.title].filter(Boolean).join(' · ');
createRoot(document.getElementById('page')).render(<Page />);
