"""Users see the class and the message of a JVM exception's first cause, without the stack trace."""

from __future__ import annotations

import pytest

from jobs.hudi.jvm import class_and_message, thrown

_ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 112.0 failed 4 times, most recent failure: Lost task 0.3 in"
    " stage 112.0 (TID 192) (192.0.2.2 executor driver): "
)
_NULL = 'java.lang.NullPointerException: Cannot invoke "toString()" because "partitionPath" is null'
_FRAME = "\n\tat org.apache.hudi.Some.method(Some.java:7)"


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        (
            [
                ("org.apache.hudi.exception.HoodieException", "Failed to write"),
                ("java.io.IOException", "No space left\nsecond line"),
            ],
            "IOException: No space left",
        ),
        ([("org.apache.spark.SparkException", _ABORTED + _NULL + _FRAME)], _NULL.removeprefix("java.lang.")),
        (
            [
                (
                    "org.apache.spark.SparkException",
                    f"{_ABORTED}a.B: outer{_FRAME}\nCaused by: {_NULL}{_FRAME}\n\t... 3 more",
                )
            ],
            _NULL.removeprefix("java.lang."),
        ),
        ([("a.b.Outer$Inner", "Once"), ("java.lang.IllegalStateException", "")], "Inner: Once"),
        ([("java.lang.NullPointerException", "")], "NullPointerException"),
        ([], ""),
    ],
)
def test_the_first_cause_is_named_by_its_class_and_sentence(causes: list[tuple[str, str]], said: str) -> None:
    assert thrown(causes) == said


_TRACEBACK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "split_writer.py", line 200, in close
    written = [output.close() for output in self._outputs]
               ^^^^^^^^^^^^^^
OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_TRACEBACK, "OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"),
        ("java.io.IOException: No space left", "IOException: No space left"),
        ("ValueError", "ValueError"),
        ("", ""),
    ],
)
def test_an_exception_that_comes_as_a_text_is_named_too(text: str, said: str) -> None:
    assert thrown([class_and_message(text)]) == said
