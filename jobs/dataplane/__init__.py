"""The rewriting of rows by Arrow: slices are read, merged, split, sorted and written."""
