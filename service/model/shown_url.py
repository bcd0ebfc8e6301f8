"""URLs of webhooks as those may see them who must not call them."""

from __future__ import annotations

from urllib.parse import urlsplit

from jobs.redaction import MASK


def shown_url(url: str) -> str:
    """Returns the URL without its path, which is the credential of a chat's URL. A Kafka topic has none."""
    split = urlsplit(url)
    # The scheme may have a prefix, such as that of OpenLineage.
    if split.scheme.rpartition("+")[2] not in ("http", "https") or (split.path in ("", "/") and not split.query):
        return url
    return f"{split.scheme}://{split.netloc}/{MASK}"
