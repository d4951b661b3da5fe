"""Methods that estimate the quality of each annotator."""
