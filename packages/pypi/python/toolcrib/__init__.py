"""The command `toolcrib`. The wheel contains its binary as a script; this package only makes `python -m toolcrib` work."""
