"""Log-in by an OpenID provider (OpenID Connect Core 1.0): its documents, its tokens, and the persons that it names."""
