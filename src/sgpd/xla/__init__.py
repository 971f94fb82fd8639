"""What exists only because of the compiler: its flags, its cache, its threads, and sums that it would make badly."""
