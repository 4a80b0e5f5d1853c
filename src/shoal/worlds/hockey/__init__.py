"""World hockey: two rackets, a puck, two goals, with a contact solver and continuous collision of its own."""
