"""`groundskeeper demo`: one command shows all services on a real Hudi table, while a writer writes without pause."""
