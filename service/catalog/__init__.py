"""The registered tables, with what their owners declare and what polls have found."""
