"""`python -m hushrank`, also from a source tree that is not installed."""

from hushrank.cli.main import main

if __name__ == "__main__":
    main()
