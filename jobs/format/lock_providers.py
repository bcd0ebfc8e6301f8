"""Hudi's lock providers (1.2.0), by the short names that a registration may use."""

LOCK_PROVIDERS = {
    "filesystem": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "zookeeper": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
}


def class_of(provider: str) -> str:
    """Returns the class name of a provider that is given by its short name or by its class."""
    return LOCK_PROVIDERS.get(provider, provider)
