/* From page to page. */
import { config } from './config';

const PAGES = [['/graphql', 'GraphiQL'], ['/graph', 'Graph'], ...(config.outline ? [['/schema', 'Schema']] : [])];

export function Links() {
  return (
    <nav aria-label="Pages">
      {PAGES.map(([path, name]) => (
        <a key={path} href={path} aria-current={location.pathname === path ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}
