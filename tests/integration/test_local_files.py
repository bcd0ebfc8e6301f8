"""Local files are created and listed without a child process for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from jobs.hudi.jvm import Jvm
from jobs.hudi.local_files import replace_in

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def files(spark: SparkSession) -> Any:
    return Jvm(spark).java.org.apache.hadoop.fs


@pytest.fixture
def shared(spark: SparkSession, files: Any) -> Any:
    """The file system of workers; the tests' session has another one, which has no permissions."""
    jvm = Jvm(spark)
    conf = jvm.java.org.apache.hadoop.conf.Configuration(jvm.hadoop_conf)
    conf.set("fs.file.impl", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem")
    found = files.FileSystem.newInstance(jvm.java.java.net.URI.create("file:///"), conf)
    replace_in(jvm, found)
    return found


def test_permissions_are_set_by_the_jvm_itself(files: Any, shared: Any, tmp_path: Path) -> None:
    assert shared.getRawFileSystem().getClass().getName() == "groundskeeper.LocalFiles"
    shared.create(files.Path(f"{tmp_path}/file")).close()
    shared.setPermission(files.Path(f"{tmp_path}/file"), files.permission.FsPermission("640"))
    shared.mkdirs(files.Path(f"{tmp_path}/folder"), files.permission.FsPermission("750"))
    # Bits that Java cannot set are left to Hadoop.
    shared.setPermission(files.Path(f"{tmp_path}/folder"), files.permission.FsPermission("1750"))
    assert [oct((tmp_path / name).stat().st_mode) for name in ("file", "folder")] == ["0o100640", "0o41750"]


def test_a_file_is_read_through_a_small_buffer(spark: SparkSession, files: Any, shared: Any, tmp_path: Path) -> None:
    content = bytes(range(256)) * 2000
    (tmp_path / "file").write_bytes(content)
    path, asked = files.Path(f"{tmp_path}/file"), 32 << 20
    buffer = Jvm(spark).java.java.lang.Class.forName("java.io.BufferedInputStream").getDeclaredField("buf")
    buffer.setAccessible(True)
    with_buffer = shared.getRawFileSystem().open(path, asked).getWrappedStream()
    assert len(buffer.get(with_buffer)) == 128 << 10
    with_buffer.close()
    read = shared.open(path, asked)
    read.seek(1000)
    assert read.getWrappedStream().readNBytes(len(content)) == content[1000:]
    read.close()


def test_errors_are_hadoops(files: Any, shared: Any, tmp_path: Path) -> None:
    with pytest.raises(Py4JJavaError, match=r"chmod: cannot access .*No such file or directory"):
        shared.setPermission(files.Path(f"{tmp_path}/none"), files.permission.FsPermission("640"))


def test_a_file_is_still_not_renamed_onto_another(files: Any, shared: Any, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
    assert not shared.rename(files.Path(f"{tmp_path}/one"), files.Path(f"{tmp_path}/other"))
    assert (tmp_path / "other").read_text() == "other"


def test_a_status_is_hadoops(files: Any, shared: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o750)
    (tmp_path / "folder" / "a file: 1%").write_text("four")
    (tmp_path / "folder" / "link").symlink_to("a file: 1%")
    (tmp_path / "folder" / "lost").symlink_to("nowhere")
    (tmp_path / "folder").chmod(0o1750)
    ours, hadoops = shared.getRawFileSystem(), files.RawLocalFileSystem()
    hadoops.initialize(ours.getUri(), ours.getConf())
    root = files.Path(str(tmp_path))

    def read(status: Any) -> list[str]:
        # The time of the last access changes with each listing.
        names = ("Path", "Len", "Replication", "BlockSize", "ModificationTime", "Permission", "Owner", "Group")
        return [str(getattr(status, f"get{name}")()) for name in names] + [str(status.isDirectory())]

    def listed(each: Any) -> list[list[str]]:
        folder = files.Path(root, "folder")
        return [read(each.getFileStatus(folder)), *sorted(read(item) for item in each.listStatus(folder))]

    assert listed(ours) == listed(hadoops)
    (tmp_path / "folder" / ".link.crc").touch()
    assert len(listed(ours)) == 4
    names = sorted(each.getPath().getName() for each in shared.listStatus(files.Path(root, "folder")))
    assert names == ["a file: 1%", "link"]
    assert "rwxr-x--T" in listed(ours)[0]
    for name in ("none", "folder/lost", "folder/link/none"):
        errors = []
        for each in (ours, hadoops):
            with pytest.raises(Py4JJavaError) as error:
                each.getFileStatus(files.Path(root, name))
            errors.append(error.value.java_exception.toString())
        assert errors[0] == errors[1]
