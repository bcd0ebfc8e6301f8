"""The kinds of jobs: what each one is, and its parameters. `registry` lists them; each has a module of its name."""
