"""The problems of all tables, workers and webhooks, with one function that finds each kind; and the overview of all
tables."""
