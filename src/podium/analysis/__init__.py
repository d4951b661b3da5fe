"""What the votes and rankings say about experts, annotators and items."""
