"""The options that a writer needs while this service runs table services. They are in the syntax of the writer's
engine, and depend on its version of Hudi."""
