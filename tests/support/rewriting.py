"""Divides the rewriting of assertions among the processes of a run. On a fresh checkout each process would rewrite all
test files, at the same time as the others, which took seven seconds of its CPU time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _pytest.assertion import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


def rewrite_share(config: pytest.Config, number: int, count: int) -> None:
    """Rewrites the files of this process, which is one of `count`, if nobody has rewritten them before.

    The steps are those of pytest 9.2 (`AssertionRewritingHook.exec_module`) without the import. A file that another
    process has not finished when this one imports it is rewritten here as well, so no process waits.
    """
    if config.getoption("assertmode") != "rewrite":
        return
    for file in sorted(_files(config))[number::count]:
        kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if not kept.exists() and rewrite.try_makedirs(kept.parent):
            digest, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)


def _files(config: pytest.Config) -> Iterator[Path]:
    for argument in config.args:
        path = config.rootpath / argument.partition("::")[0]
        yield from path.rglob("test_*.py") if path.is_dir() else [path]
