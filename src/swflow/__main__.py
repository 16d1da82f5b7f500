"""`python -m swflow`: the command line of the interpreter at hand."""

from swflow.cli import main

main()
