/*
 * What the server tells its pages: it has replaced the one placeholder inside
 * <script type="application/json" id="tablegraph-config"> by a JSON object:
 *
 *   endpoint    where queries are sent, by POST                          default: /graphql
 *   title       the model's name; shown, and kept apart in localStorage  default: ""
 *   tabs        [{ title, query, variables? }], the example queries;     default: []
 *               `variables` is a string of JSON
 *   costHeader  the header that asks for `extensions.cost`               default: "Tablegraph-Cost"
 *   outline     where the model is, as JSON; null where it is not shown  default: /schema.json
 *   prices      { read, write, source, asOf }: US dollars for a unit     default: null
 *
 * Every "<" in the JSON must be written as \u003c, lest a "</script>" inside a query ends the element.
 * With the placeholder left as it is (`npm run dev`) the defaults hold.
 */
const DEFAULTS = {
  endpoint: '/graphql',
  title: '',
  tabs: [],
  costHeader: 'Tablegraph-Cost',
  outline: '/schema.json',
  prices: null,
};

export const config = readConfig();

function readConfig() {
  const text = document.getElementById('tablegraph-config').textContent;
  return { ...DEFAULTS, ...(text.startsWith('__') ? {} : JSON.parse(text)) };
}
