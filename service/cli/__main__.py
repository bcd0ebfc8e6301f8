"""`python -m service.cli` is the command `groundskeeper`."""

from service.cli.main import main

main()
