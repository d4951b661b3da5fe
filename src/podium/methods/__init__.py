"""Methods that combine many rankings into one; one file per family."""
