"""World kg: prove queries over a knowledge graph by backward chaining, thousands of queries as one batch."""
