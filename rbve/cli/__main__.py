"""`python -m rbve.cli`."""

from rbve.cli import main

main()
