"""Tokens, sessions, stored secrets, and the audit trail."""
