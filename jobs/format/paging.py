"""The bounds of a list that a server gives page by page, for it may promise another page for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_Page = TypeVar("_Page", bound="Sequence[object]")

# Servers leave out what the caller may not see, so some pages of a long list are empty.
MOST_EMPTY = 1_000
MOST_PAGES = 100_000


def bounded(pages: Iterable[_Page], error: Callable[[str], Exception]) -> Iterator[_Page]:
    """Yields the pages. After `MOST_EMPTY` empty pages in a row, or `MOST_PAGES` in all, raises what `error` makes of
    the reason."""
    empty = 0
    for number, page in enumerate(pages, 1):
        empty = 0 if page else empty + 1
        if empty > MOST_EMPTY:
            raise error(f"The list does not end: more than {MOST_EMPTY} pages in a row are empty.")
        if number > MOST_PAGES:
            raise error(f"The list has more than {MOST_PAGES} pages.")
        yield page
