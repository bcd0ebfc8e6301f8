"""Spark's plan over co-located rows, without the work that only a shuffle needs.

Spark plans an aggregate twice, before and after a shuffle, and copies each row of another data set. Without a
shuffle one aggregate is enough, and the scan of the files can be a part of the generated code that uses its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WRAPPERS = {"WholeStageCodegenExec", "InputAdapter"}


def fused(jvm: Any, query: Any, scans: Mapping[int, Any]) -> Any:
    """Returns the executable plan of a query over `scans`, the plans of reads by the ids of their data sets."""
    plan = _one_aggregate(jvm, _joined(jvm, query.executedPlan(), scans))
    for rule in _seq(query.preparations()):
        if rule.getClass().getSimpleName() == "CollapseCodegenStages":
            plan = rule.apply(plan)
    return plan


def _joined(jvm: Any, plan: Any, scans: Mapping[int, Any]) -> Any:
    """Returns the plan without the wrappers of generated code, with the scans in place of their data sets."""
    name = str(plan.getClass().getSimpleName())
    if name in _WRAPPERS:
        return _joined(jvm, plan.child(), scans)
    if name == "RDDScanExec":
        scan = scans.get(plan.rdd().id())
        # A data set of other columns than the scan's, such as one that Spark has renamed, stays what it is.
        return _joined(jvm, scan, {}) if scan is not None and _columns(scan) == _columns(plan) else plan
    children = plan.children()
    if children.isEmpty():
        return plan
    new = jvm.java.util.ArrayList()
    for child in _seq(children):
        new.add(_joined(jvm, child, scans))
    return plan.withNewChildren(jvm.PythonUtils.toSeq(new))


def _one_aggregate(jvm: Any, plan: Any) -> Any:
    """Returns one aggregate in place of a partial and a final one at the top of the plan, or the plan as it is."""
    if not _is_hash_aggregate(plan) or not _is_hash_aggregate(plan.child()):
        return plan
    partial = plan.child()
    if not _modes(plan) <= {"Final"} or not _modes(partial) <= {"Partial"}:
        return plan
    complete = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.aggregate.Complete$")
    mode = complete.getField("MODULE$").get(None)
    functions = jvm.java.util.ArrayList()
    for each in _seq(partial.aggregateExpressions()):
        functions.add(each.copy(each.aggregateFunction(), mode, False, each.filter(), each.resultId()))
    return plan.copy(
        plan.requiredChildDistributionExpressions(),
        plan.isStreaming(),
        plan.numShufflePartitions(),
        partial.groupingExpressions(),
        jvm.PythonUtils.toSeq(functions),
        plan.aggregateAttributes(),
        0,
        plan.resultExpressions(),
        partial.child(),
    )


def _columns(plan: Any) -> list[str]:
    """Returns the columns with their ids, by which the operators above name them."""
    return [str(each.toString()) for each in _seq(plan.output())]


def _is_hash_aggregate(plan: Any) -> bool:
    return str(plan.getClass().getSimpleName()) == "HashAggregateExec"


def _modes(plan: Any) -> set[str]:
    """Returns the modes of the functions; those of distinct values are planned in more than two steps."""
    return {"distinct" if each.isDistinct() else str(each.mode()) for each in _seq(plan.aggregateExpressions())}


def _seq(found: Any) -> list[Any]:
    return [found.apply(at) for at in range(found.size())]
