"""`python -m judge`: the command line, of the Python that runs this."""

from judge.cli import main

if __name__ == "__main__":
    main()
