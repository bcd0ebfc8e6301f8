"""Tests what `--help` shows of options and arguments."""

from __future__ import annotations

from typer.testing import CliRunner

from service.cli.main import app


def test_flags_are_shown_without_a_type_and_arguments_in_one_pair_of_brackets() -> None:
    for command, usage in {
        ("tables", "pause"): "tables pause [OPTIONS] [TABLE]...",
        ("acknowledge",): "acknowledge [OPTIONS] {PROBLEM}...",
        ("policy", "set"): "policy set [OPTIONS] {TARGET} [NAME=VALUE]...",
    }.items():
        shown = CliRunner().invoke(app, [*command, "--help"]).output
        assert f"{usage} " in shown
        assert "--json " in shown
        assert "<bool>" not in shown
