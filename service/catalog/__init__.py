"""The registered tables, with the declarations of their owners and the findings of polls."""
