"""The problems of the fleet: a function finds each kind; and the overview of all tables."""
