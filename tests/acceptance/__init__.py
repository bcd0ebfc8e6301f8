"""Tests of daemon and worker as processes. The folder is a package, so that its daemon ends with its last test."""
