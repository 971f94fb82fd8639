"""The run folder: what a fit leaves on the disk, who works in it, and how it is packed."""
