"""The formats of Hudi in pure Python and Arrow."""
