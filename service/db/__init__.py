"""The database: engine, schema, pages, and the migrations at the start."""
