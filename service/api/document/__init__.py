"""Completes the OpenAPI document: the texts of members that mean the same in all models, and examples of answers."""
