"""`python -m penstock.cli` is the `penstock` command."""

from penstock.cli import main

if __name__ == "__main__":
    main()
