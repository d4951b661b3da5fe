"""Methods that estimate how good each annotator is."""
