# The service and the studio: `docker compose up`, see docs/service.md.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY build_support build_support
COPY docs/semantics.md docs/semantics.md
COPY src src
# the image has no C compiler; the build backend takes one from PyPI
RUN python -m venv /opt/podium && /opt/podium/bin/pip install --no-cache-dir '.[studio]'

FROM python:3.13-slim
LABEL org.opencontainers.image.title="Podium" \
      org.opencontainers.image.source="https://github.com/podium-rank/podium" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --no-create-home podium \
    && install --directory --owner=podium /data
COPY --from=build /opt/podium /opt/podium
ENV PATH=/opt/podium/bin:$PATH PYTHONDONTWRITEBYTECODE=1 HOME=/data
USER 10001
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=4)"]
# the server refuses to start without a token: PODIUM_TOKEN, or --token-file
ENTRYPOINT ["podium", "serve", "--host", "0.0.0.0", "--port", "8765", "--folder", "/data"]
