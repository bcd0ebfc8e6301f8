"""`python -m service.cli` does what the command `groundskeeper` does."""

from service.cli.main import main

main()
