"""The problems of all tables, workers and webhooks, and the overview of all tables. Each kind of problem has one
function that finds it."""
