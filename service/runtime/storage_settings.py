"""The settings of storage: options of Hadoop's file systems, and accounts."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator

from jobs.format.hudi_options import Form
from jobs.storage import accounts
from jobs.storage.accounts import Account
from service.runtime.login_settings import LoginSettings

_STORAGE_OPTION = re.compile(r"(spark\.hadoop\.)?(dfs|fs|google\.cloud|hadoop|io|ipc)\.[\w.-]+", re.ASCII)


class StorageSettings(LoginSettings):
    """The settings with which the service and its workers reach tables."""

    storage_options: dict[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="JSON object of file system options, such as an S3 endpoint or the name nodes of HDFS",
    )
    storage_accounts: tuple[Any, ...] = Field(
        (), repr=False, description="JSON list of accounts of object storage: roots, credentials, roles to assume"
    )

    @field_validator("storage_options")
    @classmethod
    def _are_hadoops(cls, options: dict[str, str]) -> dict[str, str]:
        for key, value in options.items():
            if not _STORAGE_OPTION.fullmatch(key):
                raise ValueError(f"{key} is no option of Hadoop's file systems")
            if value and not Form.TEXT.accepts(value):
                raise ValueError(f"the value of {key} must be {Form.TEXT.value[1]}")
        return options

    @field_validator("storage_accounts")
    @classmethod
    def _are_accounts(cls, value: tuple[Any, ...]) -> tuple[Account, ...]:
        return accounts.parse(value)

    @property
    def hadoop_options(self) -> dict[str, str]:
        """Hadoop's options for all storages, including those of the accounts."""
        return {**self.storage_options, **accounts.options(self.storage_accounts)}
