"""The options that a writer needs while this service runs table services. The options are in the syntax of the writer's
engine, and depend on the writer's version of Hudi."""
