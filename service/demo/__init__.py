"""`groundskeeper demo`: all services on a real Hudi table, in one command, beside a writer that never stops."""
