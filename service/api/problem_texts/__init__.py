"""Why each type of problem occurs, with an example. Titles and hints are those of the error classes."""
