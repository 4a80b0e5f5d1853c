"""World dvrp: negotiate time windows with the customers of a dial-a-ride fleet, priced by a batched routing oracle."""
