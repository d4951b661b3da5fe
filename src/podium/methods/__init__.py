"""Methods that make one ranking of many; one file per family."""
