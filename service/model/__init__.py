"""The ids, clocks and errors that several subjects share."""
