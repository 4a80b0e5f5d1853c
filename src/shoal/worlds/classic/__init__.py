"""Classic control: small worlds everybody knows, step for step equal to Gymnasium's. Yardsticks."""
