from __future__ import annotations

import pytest

from jobs.format.properties import parse_properties


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t=  b ", {"a": "b "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\:b:c", {"a:b": "c"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a\\\\=b", {"a\\": "b"}),
        ("url=http\\://h\\=1", {"url": "http://h=1"}),
        ("a=x\\ty\\n\\q", {"a": "x\ty\nq"}),
        ("a=\\u00e9\\ud83d\\ude00", {"a": "é\U0001f600"}),
        ("a=b\\\n   c\\\\", {"a": "bc\\"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\", {"a": "b"}),
        ("#a=b\n!c=d\n\n   \n e=f\r\ng=h\ri=j", {"e": "f", "g": "h", "i": "j"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_lines_are_read_as_java_reads_them(line: str, expected: dict[str, str]) -> None:
    assert parse_properties(line.encode("iso-8859-1")) == expected


def test_bytes_are_latin_1() -> None:
    assert parse_properties(b"a=\xe9") == {"a": "é"}


def test_an_escape_that_is_cut_short_is_an_error() -> None:
    with pytest.raises(ValueError, match="u00"):
        parse_properties(b"a=\\u00")
