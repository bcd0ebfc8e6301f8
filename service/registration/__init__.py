"""The registration of tables, with the examination that precedes it and the search for tables in a folder."""
