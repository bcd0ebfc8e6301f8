"""The clocks, errors and other basic types that several packages share."""
