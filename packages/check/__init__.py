"""Checks the packages that `scripts/release` has built, as a user would install them. The command line is
`scripts/check-packages`."""
