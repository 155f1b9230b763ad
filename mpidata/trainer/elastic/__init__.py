"""Continue when a trainer dies: who lives, one agreement per step, and which rows are drawn again."""
