"""Log-in through an OpenID provider (OpenID Connect Core 1.0): the provider's documents, its tokens, and the persons
that it identifies."""
