"""Hudi's lock providers (1.2.0), by the short names that a registration may use."""

LOCK_PROVIDERS = {
    "filesystem": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "zookeeper": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
}


def class_of(provider: str) -> str:
    """The class name of a provider that is named shortly or by its class."""
    return LOCK_PROVIDERS.get(provider, provider)
