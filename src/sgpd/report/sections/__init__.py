"""The sections of a report, one file each, in the order of `page.SECTIONS`."""
