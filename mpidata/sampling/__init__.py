"""The parameters of simulations: how they are drawn, before a job or while it runs."""
