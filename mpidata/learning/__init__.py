"""What training tells of the simulations: their losses, from the trainers to the scheduler."""
