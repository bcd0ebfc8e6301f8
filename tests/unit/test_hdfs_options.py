"""Tests the conversion of Hadoop's options for HDFS to those of WebHDFS."""

from __future__ import annotations

import pickle
import re
import sys
from dataclasses import replace

import httpx
import pytest

from jobs.errors import RefusedError
from jobs.storage import hdfs
from jobs.storage.negotiate import Negotiate
from jobs.storage.paths import of_hadoop
from jobs.storage.store import LoginError

HA = {
    "dfs.nameservices": "lake",
    "dfs.ha.namenodes.lake": "nn1, nn2",
    "dfs.namenode.rpc-address.lake.nn1": "one:8020",
    "dfs.namenode.rpc-address.lake.nn2": "two:8020",
}


@pytest.mark.parametrize(
    ("cluster", "options", "expected"),
    [
        ("master", {}, ["http://master:9870"]),
        ("master:8020", {}, ["http://master:9870"]),
        ("master", {"dfs.http.policy": "HTTPS_ONLY"}, ["https://master:9871"]),
        ("master", {"spark.hadoop.dfs.namenode.http-address": "0.0.0.0:50070"}, ["http://master:50070"]),
        ("master", {"dfs.namenode.http-address.master": "web", "dfs.namenode.http-address": "no"}, ["http://web:9870"]),
        ("lake", HA, ["http://one:9870", "http://two:9870"]),
        ("other", HA, ["http://other:9870"]),
        ("lake", HA | {"dfs.namenode.http-address.lake.nn2": "0.0.0.0:1"}, ["http://one:9870", "http://two:1"]),
        ("one", {"dfs.namenode.rpc-address.one": "host:8020"}, ["http://host:9870"]),
    ],
)
def test_the_name_nodes_are_found_as_hadoop_finds_them(
    cluster: str, options: dict[str, str], expected: list[str]
) -> None:
    assert list(hdfs.of_hadoop(options, cluster).name_nodes) == expected


def test_new_files_are_as_hadoops_client_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    options = {"dfs.replication": "2", "dfs.blocksize": "256m", "fs.permissions.umask-mode": "027"}
    found = hdfs.of_hadoop(options, "lake")
    assert (found.user, found.permission, found.replication, found.block_size) == ("etl", "640", "2", str(256 << 20))
    plain = hdfs.of_hadoop({}, "lake")
    assert (plain.permission, plain.replication, plain.block_size) == ("644", None, None)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_ticket_or_a_token_identifies_the_client_with_kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    for options in ({"hadoop.security.authentication": "kerberos"}, {hdfs.AUTHENTICATION: " KERBEROS "}):
        found = hdfs.of_hadoop(options, "lake")
        assert (found.user, found.token) == (None, None)
    assert hdfs.of_hadoop({"hadoop.security.authentication": "simple"}, "lake").user == "etl"
    sent = pickle.loads(pickle.dumps(replace(found, token="GgADZXRs")))
    assert sent.token == "GgADZXRs"
    assert "GgADZXRs" not in repr(sent)


def test_without_the_extra_a_login_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(LoginError, match=re.escape("pip install 'groundskeeper[kerberos]'")):
        next(Negotiate().auth_flow(httpx.Request("GET", "http://lake:9870/webhdfs/v1/")))


@pytest.mark.parametrize(
    "options",
    [
        {"hadoop.security.authentication": "custom"},
        {"fs.hdfs.impl": "com.example.Other"},
        {"fs.permissions.umask-mode": "u=rwx"},
        {"dfs.replication": "many"},
        {"dfs.blocksize": "1.5g"},
        {"dfs.namenode.http-address": "http://x/y"},
        {"dfs.ha.namenodes.lake": "nn1"},
    ],
)
def test_options_that_webhdfs_cannot_follow_are_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(RefusedError) as refused:
        of_hadoop("hdfs://lake/t", options)
    problem = refused.value.problem()
    assert problem.type == "storage-not-supported"
    assert problem.hint


def test_the_options_are_recognized_by_their_names() -> None:
    for name in (*HA, "dfs.replication", "dfs.namenode.https-address.lake.nn1", "hadoop.security.authentication"):
        assert re.search(hdfs.OPTIONS, name) or name == "dfs.nameservices"
    assert not re.search(hdfs.OPTIONS, "fs.s3a.secret.key")


def test_paths_of_a_cluster_are_what_hadoop_makes_of_them() -> None:
    assert of_hadoop("hdfs://lake//a/100%20 b=ü/", {}).root == "/a/100%20 b=ü"
    assert of_hadoop("hdfs://lake", {}).root == "/"
