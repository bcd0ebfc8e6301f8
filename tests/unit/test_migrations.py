"""Tests what migrations declare about earlier versions of the service."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

import migrations


def test_every_migration_since_0010_declares_the_oldest_version_that_works_with_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    in_order = [*ScriptDirectory.from_config(config).walk_revisions()][::-1]
    names = [each.revision for each in in_order]
    declared = [each.module.works_with for each in in_order[names.index("0010") :]]
    # A later migration never works with an older version than an earlier migration does.
    assert [names.index(name) for name in declared] == sorted(names.index(name) for name in declared)
    assert all(
        names.index(name) <= names.index(each.revision) for each, name in zip(in_order[9:], declared, strict=True)
    )
