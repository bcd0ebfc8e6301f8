"""URLs of webhooks, shortened for people who may see a webhook but must not be able to call it."""

from __future__ import annotations

from urllib.parse import urlsplit

from jobs.redaction import MASK


def shown_url(url: str) -> str:
    """Returns the URL without its path, which in a URL of a chat service is the credential. The URL of a Kafka topic is
    returned whole."""
    split = urlsplit(url)
    # The scheme may have a prefix, such as `openlineage+`.
    if split.scheme.rpartition("+")[2] not in ("http", "https") or (split.path in ("", "/") and not split.query):
        return url
    return f"{split.scheme}://{split.netloc}/{MASK}"
