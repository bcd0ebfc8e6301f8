"""Refuses tables that the JVM would reach by the account of another table.

Tasks on executors import this module. `jobs.hudi.storage_login`, which sets the accounts, needs packages that only the
driver has.
"""

from __future__ import annotations

from jobs.errors import RefusedError
from jobs.hudi.java_view import JavaView
from jobs.problems.permissions import STORAGE_ACCOUNT
from jobs.storage import accounts


def require_own_account(jvm: JavaView, base_path: str) -> None:
    """Raises RefusedError if this JVM would reach a table on S3 by the account of another one."""
    scheme, _, rest = base_path.partition("://")
    if scheme != "s3a":
        return
    found = jvm.hadoop_conf.getRaw(f"fs.s3a.bucket.{rest.partition('/')[0]}.{accounts.OPTION}")
    if found and (reason := accounts.reason_against(base_path, accounts.of_bucket(found))):
        raise RefusedError([STORAGE_ACCOUNT.because(reason)])
