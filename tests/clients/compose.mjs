// Composes subgraphs, `{ name: SDL }` on standard input, and tells the supergraph or what is wrong.
import { readFileSync } from 'node:fs';
import { composeServices } from '@apollo/composition';
import { parse } from 'graphql';

const subgraphs = JSON.parse(readFileSync(0, 'utf8'));
const services = Object.entries(subgraphs).map(([name, sdl]) => ({ name, url: `http://${name}`, typeDefs: parse(sdl) }));
const { errors, hints, supergraphSdl } = composeServices(services);
console.log(JSON.stringify({
  errors: (errors ?? []).map((error) => [error.extensions?.code, error.message]),
  hints: (hints ?? []).map((hint) => [hint.definition.level.name, hint.definition.code, hint.message]),
  supergraph: supergraphSdl ?? null,
}));
