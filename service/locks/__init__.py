"""The locks of tables: their watch, and the breaking of one that a dead writer has left."""
