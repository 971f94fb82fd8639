"""What a fit is over: q of the field, and of field and first states together."""
