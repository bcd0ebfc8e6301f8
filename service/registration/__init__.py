"""The registration of tables, the examination that precedes it, and the search for tables in a folder."""
