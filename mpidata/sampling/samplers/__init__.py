"""The samplers that learn, and the space that they draw from."""
