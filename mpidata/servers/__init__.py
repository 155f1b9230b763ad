"""The program of the parameter servers: they keep the weights, and step the optimizer by the gradients that come."""
