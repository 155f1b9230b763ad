"""How a sampler that learns is run: in a thread of the scheduler, or on a rank of its own."""
