"""A table's files, wherever they lie. Errors of the storage become ours here, and only here."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import fs

from service.lake.location import is_s3
from service.model.errors import PathNotFoundError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Entry(NamedTuple):
    """A file or folder, its path relative to the table. `size` is in bytes, 0 for a folder."""

    path: str
    size: int
    is_folder: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Storage:
    """The folder of one table. All paths are relative to it, with `/` between segments.

    `hudi_options` are the same storage options in the words of the `hudi` package.
    """

    base_path: str
    filesystem: fs.FileSystem
    root: str
    hudi_options: Mapping[str, str] = field(default_factory=dict)

    def exists(self, path: str = "") -> bool:
        with _our_errors(self.base_path, path):
            return bool(self.filesystem.get_file_info(self._at(path)).type != fs.FileType.NotFound)

    def list(self, path: str = "", *, recursive: bool = False) -> list[Entry]:
        """Files and folders below `path`; nothing if it does not exist."""
        with _our_errors(self.base_path, path):
            selector = fs.FileSelector(self._at(path), allow_not_found=True, recursive=recursive)
            infos = self.filesystem.get_file_info(selector)
        start = len(self.root.rstrip("/")) + 1
        return [Entry(info.path[start:], info.size or 0, info.type == fs.FileType.Directory) for info in infos]

    def read(self, path: str) -> bytes:
        """The whole file. Raises PathNotFoundError, StorageError."""
        with self.open(path) as file:
            return bytes(file.read())

    @contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        """The file for random access. What goes wrong inside the block is translated as well."""
        with _our_errors(self.base_path, path), self.filesystem.open_input_file(self._at(path)) as file:
            yield file

    def _at(self, path: str) -> str:
        return f"{self.root.rstrip('/')}/{path}" if path else self.root


def open_storage(base_path: str, options: Mapping[str, str]) -> Storage:
    """The storage of a canonical base path.

    `options` are Hadoop's (`fs.s3a.access.key`, `.secret.key`, `.session.token`, `.endpoint`, `.endpoint.region`,
    `.connection.ssl.enabled`), as the owner's Spark jobs have them. Without keys, the usual AWS sources are asked.
    """
    if not is_s3(base_path):
        return Storage(base_path, fs.LocalFileSystem(), base_path)
    with _our_errors(base_path):
        s3 = _S3Options.of(options)
        return Storage(base_path, s3.filesystem(), base_path.removeprefix("s3a://"), s3.for_hudi())


@dataclass(frozen=True, repr=False)  # no repr: it holds secrets
class _S3Options:
    access_key: str | None
    secret_key: str | None
    session_token: str | None
    region: str | None
    endpoint: str | None
    tls: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _S3Options:
        def option(name: str) -> str | None:
            return options.get(f"fs.s3a.{name}") or options.get(f"spark.hadoop.fs.s3a.{name}") or None

        endpoint = option("endpoint")
        tls = (option("connection.ssl.enabled") or "true").lower() != "false"
        if endpoint and "://" in endpoint:
            scheme, _, endpoint = endpoint.partition("://")
            tls = scheme.lower() == "https"
        return cls(
            access_key=option("access.key"),
            secret_key=option("secret.key"),
            session_token=option("session.token"),
            region=option("endpoint.region"),
            endpoint=endpoint.rstrip("/") if endpoint else None,
            tls=tls,
        )

    def filesystem(self) -> fs.FileSystem:
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            session_token=self.session_token,
            region=self.region,
            endpoint_override=self.endpoint,
            scheme="https" if self.tls else "http",
        )

    def for_hudi(self) -> dict[str, str]:
        named = {
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_session_token": self.session_token,
            "aws_region": self.region,
            "aws_endpoint": f"{'https' if self.tls else 'http'}://{self.endpoint}" if self.endpoint else None,
            "aws_allow_http": None if self.tls else "true",
        }
        return {name: value for name, value in named.items() if value}


@contextmanager
def _our_errors(base_path: str, path: str = "") -> Iterator[None]:
    where = f"{base_path}/{path}" if path else base_path
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PathNotFoundError(f"{where} does not exist") from error
    except PermissionError as error:
        raise PathNotFoundError(f"{where} cannot be read: permission denied") from error
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{where}: {error}") from error
