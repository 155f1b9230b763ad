"""How the trainers go on when one of them dies: who lives, one agreement a step, whose rows come again."""
