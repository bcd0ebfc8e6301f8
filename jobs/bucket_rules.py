"""How many buckets each partition has: Hudi's partition-level bucket rules, and how an expansion changes them.

Mirrors `RegexRuleEngine` and `PartitionBucketIndexCalculator` of Hudi 1.2.0: rules `regex,number` are separated by `;`,
the first whose regex is found in the partition path wins. Hudi caches a calculator by the text of the rules alone,
without their default number, so the rules we write always end with one that matches everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

EVERYTHING = ".*"


@dataclass(frozen=True)
class BucketRules:
    """Ordered rules `(regex, number of buckets)`; `default` counts where none matches."""

    rules: tuple[tuple[str, int], ...]
    default: int

    @classmethod
    def uniform(cls, num_buckets: int) -> BucketRules:
        return cls(((EVERYTHING, num_buckets),), num_buckets)

    @classmethod
    def parse(cls, expressions: str, default: int) -> BucketRules:
        rules = []
        for expression in expressions.split(";"):
            regex, _, number = expression.strip().rpartition(",")
            rules.append((regex.strip(), int(number)))
        return cls(tuple(rules), default)

    def __str__(self) -> str:
        return ";".join(f"{regex},{number}" for regex, number in self.rules)

    def buckets_of(self, partition: str) -> int:
        return next((number for regex, number in self.rules if re.search(regex, partition)), self.default)

    def whole_table(self, *, num_buckets: int | None, factor: int | None) -> BucketRules:
        """The rules after an expansion of every partition, to one number or by one factor."""
        if num_buckets is not None:
            return BucketRules.uniform(num_buckets)
        times = factor or 1
        multiplied = tuple((regex, number * times) for regex, number in self.rules)
        return _closed(BucketRules(multiplied, self.default * times))

    def only(self, numbers: dict[str, int]) -> BucketRules:
        """The rules after an expansion of some partitions (path -> new number of buckets) and of no other."""
        mine = {exactly(partition): number for partition, number in numbers.items()}
        others = tuple(rule for rule in _closed(self).rules if rule[0] not in mine)
        return replace(self, rules=(*mine.items(), *others))


def exactly(partition: str) -> str:
    """A regex that only this partition path matches, in Java and in Python, free of the rules' separators."""
    quoted = "".join(
        char if (char.isascii() and (char.isalnum() or char == "_")) or ord(char) > 0xFFFF else f"\\u{ord(char):04x}"
        for char in partition
    )
    return f"^{quoted}$"


def _closed(rules: BucketRules) -> BucketRules:
    if rules.rules and rules.rules[-1][0] == EVERYTHING:
        return rules
    return replace(rules, rules=(*rules.rules, (EVERYTHING, rules.default)))
