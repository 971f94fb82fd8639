"""The command line. Importing this loads no JAX: heavy imports happen inside commands."""

from sgpd.cli.app import main as main
