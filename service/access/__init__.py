"""The tokens, sessions and stored secrets, and the audit trail."""
