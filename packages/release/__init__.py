"""Builds the packages of the command `toolcrib`: wheel, npm packages, archive and the files for the container image.

`scripts/release` is the command line. One build of the binary goes into all packages: maturin compiles it for the wheel,
and the other packages get the same file.
"""
