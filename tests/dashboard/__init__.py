"""Tests of the dashboard in a browser. The folder is a package, so that its service ends with its last test."""
