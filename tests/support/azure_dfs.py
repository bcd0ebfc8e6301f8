"""A stand-in for a storage account of Azure with a hierarchical namespace, in a process of its own.

We wrote the server by Azure's REST reference, because no available emulator has the interface that Hadoop's `abfs` uses
(Data Lake Storage Gen2, "DFS"); Azurite (3.37) has only the interface for blobs. Our server serves the operations of
both interfaces that Hadoop's client and Arrow use, on the same files, by HTTPS, and checks the signatures of both
(shared key). Requests that no client sends (leases, changes of access control, page and append blobs, copies) are
refused with 400. `azure_front` speaks HTTP, `azure_tree` keeps the files.
"""

from __future__ import annotations

import json
import ssl
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from jobs.hudi.java import TRUST_STORE_PASSWORD
from jobs.storage.stores import store_of
from tests.integration.certificate import Certificate, self_signed
from tests.support.azure_front import REQUESTS
from tests.support.azurite import KEY, ROOT
from tests.support.ports import free_port, listening
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import fs
    from pyspark.sql import SparkSession

# The variable that names the trusted authorities of OpenSSL, and so of Arrow's client.
_AUTHORITIES = "SSL_CERT_FILE"


@dataclass(frozen=True)
class Server:
    """`options` are Hadoop's, by which all clients find the server; `files` is the file system of the service and the
    tasks."""

    port: int

    @property
    def options(self) -> dict[str, str]:
        return {
            "fs.azure.account.key": KEY,
            "fs.azure.abfs.endpoint": f"localhost:{self.port}",
            # The server has no faults, so a failing call must fail soon.
            "fs.azure.io.retry.max.retries": "2",
            "fs.azure.io.retry.backoff.interval": "100",
        }

    @property
    def files(self) -> fs.FileSystem:
        return store_of(f"{ROOT}/", self.options).filesystem()

    def requests(self) -> list[str]:
        """Returns method, address and status of all requests since the last call."""
        trusting = ssl.create_default_context(cafile=_certificate().public)
        url = f"https://localhost:{self.port}{REQUESTS}"
        with urllib.request.urlopen(url, timeout=30, context=trusting) as answer:
            return list(json.load(answer))


@contextmanager
def running(*, page: int = 50) -> Iterator[Server]:
    """Starts the server on a free port, with an empty container `lake`, and ends it. `page` is the number of entries in
    a page of a listing.

    Meanwhile this process and its children trust no other servers.
    """
    # The server has its own process, because Arrow may wait for it while it holds the interpreter's lock.
    port = free_port()
    certificate = _certificate()
    files = [str(certificate.public), str(certificate.private)]
    command = [sys.executable, "-m", "tests.support.azure_front", str(port), str(page), *files]
    with listening(command, port), pytest.MonkeyPatch.context() as environment:
        environment.setenv(_AUTHORITIES, files[0])
        server = Server(port)
        server.files.create_dir("lake")
        yield server


@contextmanager
def trusted(spark: SparkSession, server: Server) -> Iterator[None]:
    """Gives the session and its tasks the server's options and certificate."""
    java: Any = spark._jvm
    contexts, tasks = java.javax.net.ssl.SSLContext, spark.sparkContext.environment
    before = contexts.getDefault()
    contexts.setDefault(_trusting(java))
    tasks[_AUTHORITIES] = str(_certificate().public)
    try:
        with reached_by(spark, server.options, ROOT):
            yield
    finally:
        del tasks[_AUTHORITIES]
        contexts.setDefault(before)


def _trusting(java: Any) -> Any:
    """Sets a TLS context that a JVM uses even if it has already made its default context. Hadoop's `abfs` reads the
    context once."""
    keys = java.java.security.KeyStore.getInstance("PKCS12")
    keys.load(None, None)
    file = java.java.io.FileInputStream(str(_certificate().public))
    authority = java.java.security.cert.CertificateFactory.getInstance("X.509").generateCertificate(file)
    keys.setCertificateEntry("storage", authority)
    factory = java.javax.net.ssl.TrustManagerFactory.getInstance("PKIX")
    factory.init(keys)
    context = java.javax.net.ssl.SSLContext.getInstance("TLS")
    context.init(None, factory.getTrustManagers(), None)
    return context


def trust_options() -> dict[str, str]:
    """Returns the system properties of a JVM that trusts the server."""
    store = _certificate().public.with_name("trust-store.p12")
    return {"javax.net.ssl.trustStore": str(store), "javax.net.ssl.trustStorePassword": TRUST_STORE_PASSWORD}


@lru_cache(maxsize=1)
def _certificate() -> Certificate:
    """Returns one certificate for all servers of this process, because a JVM keeps the authorities that it has read."""
    certificate = self_signed("localhost", Path(tempfile.mkdtemp(prefix="azure-certificate-")))
    authority = x509.load_pem_x509_certificate(certificate.public.read_bytes())
    entries = [pkcs12.PKCS12Certificate(authority, b"storage")]
    store = pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(TRUST_STORE_PASSWORD.encode()))
    certificate.public.with_name("trust-store.p12").write_bytes(store)
    return certificate
