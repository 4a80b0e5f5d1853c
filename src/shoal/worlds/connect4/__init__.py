"""Connect Four: two players drop stones in turn; four in a line win."""
