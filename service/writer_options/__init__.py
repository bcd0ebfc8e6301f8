"""The options that a writer needs beside this service, in the syntax of its engine, by its version of Hudi."""
