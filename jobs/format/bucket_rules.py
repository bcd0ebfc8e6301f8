"""Hudi's partition-level bucket rules, which give each partition a number of buckets, and changes of that number.

Mirrors `RegexRuleEngine` and `PartitionBucketIndexCalculator` of Hudi 1.2.0: rules `regex,number` are separated by `;`,
and the first rule whose regex is found in the partition path wins. Hudi caches a calculator by the text of the rules
alone, without their default number, so the rules we write always end with one that matches everything.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jobs.contract import Problem
from jobs.kinds.words import PartitionChoice
from jobs.problems.rescales import NUM_BUCKETS_NOT_A_DIVISOR, NUM_BUCKETS_NOT_A_MULTIPLE, NUM_BUCKETS_TOO_UNLIKE

EVERYTHING = ".*"
_DEFAULT = -1  # `RegexRuleEngine` returns -1 if no rule matches, so a rule of -1 means the default number
_JAVA_INT = re.compile(r"[+-]?\d+")  # `Integer.parseInt` accepts digits of any script
_JAVA_BLANKS = "".join(map(chr, range(ord(" ") + 1)))  # the characters that `String.trim` removes
_MAX_INT = 2**31 - 1
_MOST_CHILDREN = 1024
_MOST_RESIDUES = 10**8 - 1  # A file id has eight digits for the bucket.


class BucketRulesError(ValueError):
    """Rules that Hudi refuses, or that Python cannot apply as Java does."""


@dataclass(frozen=True)
class Scale:
    """A target of a rescale: one number of buckets, or a factor."""

    num_buckets: int | None = None
    factor: int | None = None  # Multiplies the current number.
    contracts: bool = False  # Whether the factor divides the current number instead.
    to_any: bool = False  # Whether the new number may be any, neither a multiple nor a divisor.

    def of(self, number: int) -> int:
        """Returns the new number. A number that the factor does not divide stays as it is."""
        if self.num_buckets is not None:
            return self.num_buckets
        factor = self.factor or 1
        if not self.contracts:
            return number * factor
        return number if number % factor else number // factor


@dataclass(frozen=True)
class BucketRules:
    """Ordered rules `(regex, number of buckets)`; `default` is the number if none matches."""

    rules: tuple[tuple[str, int], ...]
    default: int

    @classmethod
    def uniform(cls, num_buckets: int) -> BucketRules:
        return cls(((EVERYTHING, num_buckets),), num_buckets)

    @classmethod
    def parse(cls, expressions: str, default: int) -> BucketRules:
        """Parses `<regex>,<number>;<regex>,<number>;...`. A rule of -1 gets the default number.

        Raises `BucketRulesError` for rules that `RegexRuleEngine` refuses, for a number below one, and for a Java regex
        that Python does not know.
        """
        rules = tuple(_rule(expression) for expression in _java_split(expressions, ";"))
        named = tuple((regex, default if number == _DEFAULT else number) for regex, number in rules)
        if not all(0 < number <= _MAX_INT for number in (default, *(number for _, number in named))):
            raise BucketRulesError(f"the rules {expressions!r}, default {default}: a partition has at least one bucket")
        return cls(named, default)

    def __str__(self) -> str:
        return ";".join(f"{regex},{number}" for regex, number in self.rules)

    def buckets_of(self, partition: str) -> int:
        return next((number for regex, number in self.rules if _compiled(regex).search(partition)), self.default)

    def whole_table(self, scale: Scale) -> BucketRules:
        """Returns the rules after a rescale of every partition."""
        if scale.num_buckets is not None:
            return BucketRules.uniform(scale.num_buckets)
        scaled = tuple((regex, scale.of(number)) for regex, number in self.rules)
        return _closed(BucketRules(scaled, scale.of(self.default)))

    def only(self, selection: Selection, scale: Scale) -> BucketRules:
        """Returns the rules after a rescale of only these partitions."""
        first: dict[str, int] = {}
        for partition in selection.exact:
            first[exactly(partition)] = scale.of(self.buckets_of(partition))
        for prefix in selection.prefixes:
            if scale.num_buckets is not None:
                first.setdefault(_beginning(prefix), scale.num_buckets)
                continue
            for regex, number in _closed(self).rules:
                first.setdefault(_beginning_and(prefix, regex), scale.of(number))
        others = tuple(rule for rule in _closed(self).rules if rule[0] not in first)
        return replace(self, rules=(*first.items(), *others))


@dataclass(frozen=True)
class Selection:
    """Some partitions of a table: those with exactly these paths, and all existing and future ones with these
    prefixes."""

    exact: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: Sequence[PartitionChoice]) -> Selection:
        """Returns the selection for a job's parameter, which has paths and objects with a `prefix`."""
        exact = tuple(item for item in wanted if isinstance(item, str))
        return cls(exact, tuple(item.prefix for item in wanted if not isinstance(item, str)))

    def __contains__(self, partition: str) -> bool:
        return partition in self.exact or partition.startswith(self.prefixes)

    def missing(self, existing: Collection[str]) -> list[str]:
        """Returns the paths and prefixes that select none of the existing partitions."""
        without = [prefix for prefix in self.prefixes if not any(path.startswith(prefix) for path in existing)]
        return [path for path in self.exact if path not in existing] + [f"{prefix}..." for prefix in without]


@dataclass(frozen=True)
class BucketChange:
    """The number of buckets of each partition, before and after; both are equal if rows keep their buckets."""

    old: BucketRules
    new: BucketRules
    # Whether rows only go to the buckets of the number `finer`; whole files go from there to the new buckets.
    to_finer: bool = False

    def is_for(self, partition: str) -> bool:
        return self.old.buckets_of(partition) != self.new.buckets_of(partition)

    def contracts(self, partition: str) -> bool:
        return self.old.buckets_of(partition) > self.new.buckets_of(partition)

    def finer(self, partition: str) -> int:
        """Returns the least common multiple of the two numbers. The hash of a row modulo that number decides its old
        and new bucket."""
        return math.lcm(self.old.buckets_of(partition), self.new.buckets_of(partition))

    def after(self, partition: str) -> int:
        """Returns the number of buckets into which the rows are written."""
        return self.finer(partition) if self.to_finer else self.new.buckets_of(partition)

    def is_too_unlike(self, partition: str) -> bool:
        """Returns whether a bucket would be split into too many buckets, or whether too many intermediate files would
        be written."""
        return _are_too_unlike(self.old.buckets_of(partition), self.new.buckets_of(partition))

    def residues(self, partition: str, bucket: int) -> tuple[int, ...]:
        """Returns the residues by `finer` of the rows in old bucket i of N: i, i + N, ... (`hash % finer` where `hash %
        N` is i); after a contraction to a divisor only i. A bucket beyond both numbers has none."""
        return tuple(range(bucket, self.finer(partition), self.old.buckets_of(partition)))

    def children(self, partition: str, bucket: int) -> tuple[int, ...]:
        """Returns the buckets that the rows of old bucket i go to; they are different."""
        new = self.after(partition)
        return tuple(residue % new for residue in self.residues(partition, bucket))

    def family(self, partition: str, bucket: int) -> int:
        """Returns the number that identifies the family of `bucket`: the smallest set of old and new buckets between
        which rows move. All old buckets of a family must be rewritten together. If g is the greatest common
        divisor of both numbers, a row's bucket modulo g is the same before and after."""
        return bucket % math.gcd(self.old.buckets_of(partition), self.new.buckets_of(partition))


def _rule(expression: str) -> tuple[str, int]:
    parts = _java_split(expression.strip(_JAVA_BLANKS), ",")
    if len(parts) != 2 or not _JAVA_INT.fullmatch(parts[1].strip(_JAVA_BLANKS)):
        raise BucketRulesError(f"the rule {expression!r} is not `regex,buckets`")
    regex = parts[0].strip(_JAVA_BLANKS)
    try:
        _compiled(regex)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise BucketRulesError(f"the regex {regex!r}: {error}") from error
    return regex, int(parts[1].strip(_JAVA_BLANKS))


@functools.lru_cache(maxsize=1024)
def _compiled(regex: str) -> re.Pattern[str]:
    """Compiles a regex of Java. The character classes of Java's regexes are ASCII. Nested sets, about which Python
    warns, are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        return re.compile(regex, re.ASCII)


def _java_split(text: str, separator: str) -> list[str]:
    """Splits as Java's `String.split`: empty strings at the end are dropped, unless there is nothing else."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def exactly(partition: str) -> str:
    """Returns a regex that matches this partition path only, in Java and in Python, without the rules' separators."""
    return f"^{_quoted(partition)}$"


def _beginning(prefix: str) -> str:
    return f"^{_quoted(prefix)}"


def _beginning_and(prefix: str, regex: str) -> str:
    """Returns a regex that matches paths with this prefix that `regex` matches too."""
    lookahead = f"^(?={_quoted(prefix)})"
    if regex == EVERYTHING:
        return _beginning(prefix)
    if regex.startswith((_beginning(prefix), lookahead)):
        return regex
    return f"{lookahead}.*?(?:{regex})"


def _quoted(text: str) -> str:
    return "".join(
        char if (char.isascii() and (char.isalnum() or char == "_")) or ord(char) > 0xFFFF else f"\\u{ord(char):04x}"
        for char in text
    )


def _closed(rules: BucketRules) -> BucketRules:
    if rules.rules and rules.rules[-1][0] == EVERYTHING:
        return rules
    return replace(rules, rules=(*rules.rules, (EVERYTHING, rules.default)))


def not_a_multiple(partition: str, before: int, after: int, others: int = 0) -> Problem:
    more = f" (and so for {others} other partitions)" if others else ""
    return NUM_BUCKETS_NOT_A_MULTIPLE.because(
        f"partition '{partition}' has {before} buckets, {after} were asked for{more}",
        hint=f"Ask for {before * 2}, {before * 3} or {before * 4} buckets, or for a `factor`; or run a `bucket_count`.",
    )


def not_a_divisor(partition: str, before: int, after: int, others: int = 0) -> Problem:
    """Returns the refusal of a contraction; `after` equals `before` if the factor does not divide it."""
    more = f" (and so for {others} other partitions)" if others else ""
    what = "that cannot be contracted so" if after == before else f"{after} were asked for"
    smaller = [str(number) for number in range(before // 2, 0, -1) if before % number == 0][:3]
    return NUM_BUCKETS_NOT_A_DIVISOR.because(
        f"partition '{partition}' has {before} buckets, {what}{more}",
        hint=f"Ask for {' or '.join(smaller)} buckets." if smaller else "Leave out partitions with a single bucket.",
    )


def too_unlike(partition: str, before: int, after: int) -> Problem:
    near = next(
        number
        for distance in itertools.count(1)
        for number in (after - distance, after + distance)
        if number > 0 and number != before and not _are_too_unlike(before, number)
    )
    return NUM_BUCKETS_TOO_UNLIKE.because(
        f"partition '{partition}' has {before} buckets, {after} were asked for",
        hint=f"Ask for a number that shares a larger divisor with {before}, such as {near}.",
    )


def _are_too_unlike(before: int, after: int) -> bool:
    finer = math.lcm(before, after)
    return finer > _MOST_RESIDUES or finer // before > _MOST_CHILDREN
