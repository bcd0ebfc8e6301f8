"""URLs of webhooks, shortened for people who may see a webhook but must not be able to call it."""

from __future__ import annotations

from urllib.parse import urlsplit

from jobs.redaction import MASK


def shown_url(url: str) -> str:
    """Returns the URL without its path, because the path of a chat service's URL is a credential. The URL of a Kafka
    topic is returned unchanged."""
    split = urlsplit(url)
    # The scheme may have a prefix, such as `openlineage+`.
    if split.scheme.rpartition("+")[2] not in ("http", "https") or (split.path in ("", "/") and not split.query):
        return url
    return f"{split.scheme}://{split.netloc}/{MASK}"
