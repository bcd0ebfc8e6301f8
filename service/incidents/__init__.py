"""The faults found on tables that need a repair, from their opening to their end."""
