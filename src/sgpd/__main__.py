"""`python -m sgpd`."""

from sgpd.cli import main

if __name__ == "__main__":
    main()
