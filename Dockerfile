# GraphiQL, which the server shows to browsers.
FROM node:22-slim AS graphiql
WORKDIR /ide
COPY server/ide/package.json server/ide/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY server/ide ./
RUN npm run build

# All files have their hashes in the locks, and are built already: no compiler is needed, here or later.
FROM python:3.13-slim AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1
WORKDIR /source
COPY requirements.lock requirements-run.lock ./
RUN python -m venv /tools && /tools/bin/pip install --require-hashes --only-binary :all: -r requirements.lock
RUN python -m venv --without-pip /app && \
    /tools/bin/pip --python /app/bin/python install --require-hashes --only-binary :all: -r requirements-run.lock
COPY pyproject.toml ./
COPY graph graph
COPY resolvers resolvers
COPY server server
COPY --from=graphiql /ide/dist server/ide/dist
RUN /tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . && \
    /tools/bin/pip --python /app/bin/python install --no-deps --no-index /wheel/*.whl

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home tablegraph
COPY --from=packages /app /app
ENV PATH=/app/bin:$PATH TABLEGRAPH_HOST=0.0.0.0 TABLEGRAPH_SCHEMA=/model/schema.graphql TABLEGRAPH_SEARCH=/data/search.db TABLEGRAPH_PRODUCTION=true
WORKDIR /data
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", "import os, urllib.request as http; http.urlopen('http://127.0.0.1:' + os.environ.get('TABLEGRAPH_PORT', '8000') + '/healthz', timeout=2)"]
ENTRYPOINT ["tablegraph"]
CMD ["serve"]
