"""`python -m kernelgate`: the command line of whichever interpreter is asked, for processes that start each other."""

from kernelgate.cli import main

main()
