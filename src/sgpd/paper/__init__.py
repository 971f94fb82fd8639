"""The experiments of the paper, from the public names of sgpd."""
