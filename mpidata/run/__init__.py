"""A run, as its files tell it: the plan of its ranks, its folder, its parameters, events and exits."""
