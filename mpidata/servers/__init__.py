"""The program of the parameter servers, which store the weights and step the optimizer with received gradients."""
