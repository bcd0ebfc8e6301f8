"""Completes the OpenAPI document: the texts of members that need none beside their model, and examples of answers."""
